"""Apple's ``BNNSGraph.Builder`` for Python: typed tensors recorded into a graph that XLA compiles.

Start with :func:`make_context`; what a block can do is on :class:`Builder` and :class:`Tensor`.
"""

from bnnsgraph import openvino as openvino
from bnnsgraph.buffers import BNNSTensor as BNNSTensor
from bnnsgraph.builder import Builder as Builder
from bnnsgraph.context import Compilation as Compilation
from bnnsgraph.context import Context as Context
from bnnsgraph.context import make_context as make_context
from bnnsgraph.cpu import configure_cpu as configure_cpu
from bnnsgraph.dtypes import BFloat16 as BFloat16
from bnnsgraph.dtypes import Bool as Bool
from bnnsgraph.dtypes import Float16 as Float16
from bnnsgraph.dtypes import Float32 as Float32
from bnnsgraph.dtypes import Float64 as Float64
from bnnsgraph.dtypes import Int8 as Int8
from bnnsgraph.dtypes import Int16 as Int16
from bnnsgraph.dtypes import Int32 as Int32
from bnnsgraph.dtypes import Int64 as Int64
from bnnsgraph.dtypes import UInt8 as UInt8
from bnnsgraph.dtypes import UInt16 as UInt16
from bnnsgraph.dtypes import UInt32 as UInt32
from bnnsgraph.dtypes import UInt64 as UInt64
from bnnsgraph.errors import ArgumentError as ArgumentError
from bnnsgraph.errors import DTypeError as DTypeError
from bnnsgraph.errors import FileFormatError as FileFormatError
from bnnsgraph.errors import ForeignTensorError as ForeignTensorError
from bnnsgraph.errors import GraphError as GraphError
from bnnsgraph.errors import IndexOutOfBoundsError as IndexOutOfBoundsError
from bnnsgraph.errors import MissingDependencyError as MissingDependencyError
from bnnsgraph.errors import NotFiniteError as NotFiniteError
from bnnsgraph.errors import ParameterError as ParameterError
from bnnsgraph.errors import ShapeError as ShapeError
from bnnsgraph.errors import UnableToMakeGraphError as UnableToMakeGraphError
from bnnsgraph.errors import UnableToSetDynamicShapesError as UnableToSetDynamicShapesError
from bnnsgraph.errors import UndefinedValueError as UndefinedValueError
from bnnsgraph.errors import UnsupportedOpsError as UnsupportedOpsError
from bnnsgraph.graph import Graph as Graph
from bnnsgraph.graph import Intent as Intent
from bnnsgraph.inspecting import Comparison as Comparison
from bnnsgraph.inspecting import Difference as Difference
from bnnsgraph.inspecting import Trace as Trace
from bnnsgraph.inspecting import Traced as Traced
from bnnsgraph.ops.padding import Padding as Padding
from bnnsgraph.ops.pooling import CeilingMode as CeilingMode
from bnnsgraph.ops.pooling import PoolingFunction as PoolingFunction
from bnnsgraph.ops.scattering import ScatterMode as ScatterMode
from bnnsgraph.ops.slicing import SliceRange as SliceRange
from bnnsgraph.ops.sorting import SortOrder as SortOrder
from bnnsgraph.options import CompileOptions as CompileOptions
from bnnsgraph.options import OptimizationPreference as OptimizationPreference
from bnnsgraph.options import fill as fill
from bnnsgraph.passes.editing import Rewrite as Rewrite
from bnnsgraph.passes.editing import Rewrites as Rewrites
from bnnsgraph.placement import placed as placed
from bnnsgraph.recurrence import Activation as Activation
from bnnsgraph.recurrence import Direction as Direction
from bnnsgraph.running import Cost as Cost
from bnnsgraph.saving import load as load
from bnnsgraph.saving import save as save
from bnnsgraph.swift.portability import Portability as Portability
from bnnsgraph.swift.portability import portability as portability
from bnnsgraph.tensor import Tensor as Tensor
from bnnsgraph.windows import ConvolutionPadding as ConvolutionPadding
from bnnsgraph.windows import PoolingPadding as PoolingPadding

__version__ = "0.1.0"
