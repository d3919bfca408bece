# The names that are imported when they are first asked for, for type checkers.
from typing import Any

from compactla import cpu as cpu
from compactla import gpu as gpu
from compactla import krylov as krylov
from compactla import linalg as linalg
from compactla import routine as routine
from compactla.bands.banded import Banded as Banded
from compactla.bands.bandedspd import BandedSPD as BandedSPD
from compactla.bands.tridiag import Tridiag as Tridiag
from compactla.calls.prepared import prepare as prepare
from compactla.dense.axpy import axpy as axpy
from compactla.dense.chud import chud as chud
from compactla.dense.dot import dot as dot
from compactla.dense.geev import geev as geev
from compactla.dense.gels import gels as gels
from compactla.dense.gelsy import gelsy as gelsy
from compactla.dense.gemm import gemm as gemm
from compactla.dense.gemv import gemv as gemv
from compactla.dense.geqp3 import geqp3 as geqp3
from compactla.dense.geqrf import geqrf as geqrf
from compactla.dense.ger import ger as ger
from compactla.dense.gesv import gesv as gesv
from compactla.dense.gesvd import gesvd as gesvd
from compactla.dense.getrf import getrf as getrf
from compactla.dense.getrfnp import getrfnp as getrfnp
from compactla.dense.getri import getri as getri
from compactla.dense.getrinp import getrinp as getrinp
from compactla.dense.getrs import getrs as getrs
from compactla.dense.getrsnp import getrsnp as getrsnp
from compactla.dense.hemm import hemm as hemm
from compactla.dense.her import her as her
from compactla.dense.herk import herk as herk
from compactla.dense.hesv import hesv as hesv
from compactla.dense.hetrf import hetrf as hetrf
from compactla.dense.hetrs import hetrs as hetrs
from compactla.dense.nrm2 import nrm2 as nrm2
from compactla.dense.orgqr import orgqr as orgqr
from compactla.dense.ormqr import ormqr as ormqr
from compactla.dense.posv import posv as posv
from compactla.dense.potrf import potrf as potrf
from compactla.dense.potrs import potrs as potrs
from compactla.dense.scal import scal as scal
from compactla.dense.syev import syev as syev
from compactla.dense.sygv import sygv as sygv
from compactla.dense.symm import symm as symm
from compactla.dense.syr import syr as syr
from compactla.dense.syrk import syrk as syrk
from compactla.dense.sysv import sysv as sysv
from compactla.dense.sytrf import sytrf as sytrf
from compactla.dense.sytrs import sytrs as sytrs
from compactla.dense.trmm import trmm as trmm
from compactla.dense.trsm import trsm as trsm
from compactla.dense.trsv import trsv as trsv
from compactla.dense.trtri import trtri as trtri
from compactla.kron.products import kron_apply as kron_apply
from compactla.kron.products import kron_sum_apply as kron_sum_apply
from compactla.kron.products import kron_sum_solve as kron_sum_solve
from compactla.kron.products import kron_work as kron_work
from compactla.layout import Pack as Pack
from compactla.layout import pack as pack
from compactla.lines.blocktridiag import BlockTridiag as BlockTridiag
from compactla.lines.finding import find_lines as find_lines
from compactla.lines.precond import LinePreconditioner as LinePreconditioner
from compactla.lines.relaxation import LineRelaxation as LineRelaxation
from compactla.patch.patching import patch_numpy as patch_numpy
from compactla.patch.patching import unpatch_numpy as unpatch_numpy
from compactla.pivots import PivotError as PivotError
from compactla.sparse.csr import BatchCSR as BatchCSR
from compactla.sparse.lu import BatchLU as BatchLU

__version__: str
__all__: list[str]

def __getattr__(name: str) -> Any: ...
