"""Operations, one module a family: each operation's class with its rule and meaning, and the methods that record them."""
