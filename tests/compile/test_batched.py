"""Several products a block as machine code: no barrier of the block, wide copies, everything inlined."""

import pytest
from numba import cuda
from numba.cuda import types

import devmath
from devmath.lto.arch import ARCHITECTURES
from tests import batched_kernels
from tests.cases import BATCHED_CASES
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel, link, scalar

#: Every size and field, in one type of each variant.
IN_REGISTERS = [case for case in BATCHED_CASES if case.dtype in ("float32", "float16")]
EACH_EXECUTION = [
    devmath.Gemm(8, 8, 8, "float32", execution="warp"),
    devmath.Gemm(16, 16, 16, "float64", execution="warp"),
    devmath.Gemm(5, 5, 5, "complex64", execution="warp"),
    devmath.Gemm(32, 32, 32, "float64", execution="warp"),
    devmath.Gemm(16, 16, 16, "bfloat16", execution="warp"),
    devmath.Gemm(4, 4, 4, "float32", execution="thread"),
]
MM = devmath.Gemm(8, 8, 8, execution="warp", gemms_per_block=32)
BLOCK = devmath.Gemm(8, 8, 8, threads=MM.threads)
ALONE = devmath.Gemm(4, 4, 4, execution="thread", gemms_per_block=32)
FFT = devmath.FFT(64)
CUBE, MATRIX = array("float32", 3), array("float32")


def registers(mm, arch="sm_90a"):
    operand = array(mm.dtype, 3)
    return link(batched_kernels.gemm_batched(mm), (operand, operand, array(mm.c_dtype, 3)), arch)


def tiles(mm, arch="sm_90a"):
    operand, number = array(mm.dtype, 3), scalar(mm.accumulator_dtype)
    return link(batched_kernels.gemm_batched_tile(mm), (number, operand, operand, number, array(mm.c_dtype, 3)), arch)


def assert_free_of_barriers(binary):
    binary.assert_clean()
    assert [name for name in binary.opcodes if name.startswith("BAR")] == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("mm", EACH_EXECUTION, ids=repr)
def test_each_execution_links_for_each_architecture(mm, arch):
    assert_free_of_barriers(registers(mm, arch))


@pytest.mark.parametrize("case", IN_REGISTERS, ids=str)
def test_each_case_links(case):
    mm = case.descriptor()
    binary = registers(mm)
    assert_free_of_barriers(binary)
    assert binary.launch_bounds == (mm.threads, 1)
    if mm.k * mm.dtype.itemsize % 16 == 0:
        assert any(name.startswith("LDGSTS") and ".128" in name for name in binary.opcodes)


@pytest.mark.parametrize("mm", EACH_EXECUTION, ids=repr)
def test_tiles_link(mm):
    assert_free_of_barriers(tiles(mm))


@pytest.mark.parametrize("mm", [MM, ALONE], ids=repr)
def test_slices_and_an_epilog(mm):
    kernel = batched_kernels.gemm_batched_epilog(mm)
    assert_free_of_barriers(link(kernel, (CUBE, CUBE, array("float32", 1), CUBE), "sm_90a"))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("mm", EACH_EXECUTION[:2], ids=repr)
def test_loads_run_ahead(mm, arch):
    operand = array(mm.dtype, 3)
    assert_free_of_barriers(link(batched_kernels.gemm_batched_pipelined(mm), (operand, operand, operand), arch))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_shared_memory_holds_a_tile_for_each_product(arch):
    binary = registers(MM, arch)
    used = binary.shared_bytes + binary.dynamic_bytes
    assert MM.a.size_bytes + MM.b.size_bytes <= used < MM.a.size_bytes + MM.b.size_bytes + 3 * 1024
    assert MM.a.size_bytes >= 32 * 8 * 8 * 4


@pytest.mark.parametrize("mm", EACH_EXECUTION[:2], ids=repr)
def test_a_dense_batch_moves_by_16_bytes(mm):
    """Four lanes of 16 bytes, or more, copy a line of 64; a row of four outputs is stored at once."""
    opcodes = registers(mm).opcodes
    tile_bytes = mm.m * mm.k * mm.dtype.itemsize
    copies = 2 * (32 // mm.threads_per_gemm) * tile_bytes // (32 * 16)
    assert opcodes["LDGSTS.E.BYPASS.128"] == copies
    assert opcodes["STG.E.128"] >= mm.plan.fragment.size * mm.dtype.itemsize // 16


def test_registers_leave_room_for_many_warps():
    """To keep memory busy: 8^3 reads 16 KB a block, of which a multiprocessor then holds six or more."""
    assert registers(MM).registers * MM.threads * 6 <= 65536


def test_constants_are_known_while_compiling():
    @cuda.jit
    def kernel(out):
        out[0] = 1000003 * (MM.gemms_per_block + MM.threads_per_gemm)
        out[1] = 1000033 * MM.grid(MM.gemms_per_block + 1)
        out[2] = devmath.gemm_index(MM)

    ptx = link(kernel, (types.Array(types.int64, 1, "C"),), "sm_90a").ptx
    assert f" {1000003 * 36};" in ptx
    assert f" {1000033 * 2};" in ptx


REFUSED = []


def refused(sentence, *args):
    """Collect a kernel that must not compile, and what its error must say."""

    def collect(function):
        REFUSED.append(pytest.param(function, args, sentence, id=function.__name__))
        return function

    return collect


@refused("devmath.wait: its first argument must be a devmath.Gemm, got FFT(")
def wait_for_a_transform():
    devmath.wait(FFT)


@refused("devmath.wait: pending must be an integer >= 0, known while compiling, got Gemm(8, 8, 8")
def wait_for_two():
    devmath.wait(MM, MM)


@refused("devmath.gemm_index: its first argument must be a devmath.Gemm, got int", types.int64)
def index_of_a_number(n):
    devmath.gemm_index(n)


@refused("devmath.load: source must be a 2-D array of float32, got a 3-D array of float32", CUBE)
def batch_without_an_index(a):
    devmath.load(a, devmath.shared(MM.a))


@refused("devmath.load: source must be a 3-D array of float32, as an index follows, got a 2-D", MATRIX)
def index_of_a_matrix(a):
    devmath.load(a, devmath.shared(MM.a), 0)


@refused("devmath.store: a 3-D array takes one more argument, the index: an integer", CUBE)
def fractional_index(c):
    devmath.store(devmath.accumulator(MM), c, 0.5)


@refused("devmath.store: only a 3-D array takes an index, got 1 more arguments for a tile")
def index_of_a_tile():
    devmath.store(devmath.accumulator(MM), devmath.shared(MM.c), 0)


@refused("devmath.gemm: a must be devmath.shared(mm.a) of Gemm(8, 8, 8, float32, threads=128), got a tile (8, 8)")
def tile_of_a_product_where_the_block_multiplies():
    devmath.gemm(BLOCK, devmath.shared(MM.a), devmath.shared(BLOCK.b), devmath.accumulator(BLOCK))


@refused("devmath.gemm: c must be devmath.shared(mm.c) of Gemm(8, 8, 8, float32, execution='warp'")
def tile_of_the_block_for_many_results():
    devmath.gemm(MM, 1.0, devmath.shared(MM.a), devmath.shared(MM.b), 0.0, devmath.shared(BLOCK.c))


@refused("devmath.store: target must be devmath.shared(mm.c) of Gemm(8, 8, 8, float32, execution='warp'")
def accumulators_of_many_products_to_one_tile():
    devmath.store(devmath.accumulator(MM), devmath.shared(BLOCK.c))


@refused("descriptors of one kernel must agree on the threads of a block, got 128 for")
def descriptors_of_different_blocks():
    devmath.gemm_index(MM)
    devmath.accumulator(ALONE)


@refused("grid(count) takes one integer, the number of transforms or products")
def grid_of_two_numbers():
    MM.grid(1, 2)


@pytest.mark.parametrize(("function", "args", "sentence"), REFUSED)
def test_wrong_uses_are_refused(function, args, sentence):
    with pytest.raises(TYPING_ERRORS) as caught:
        compile_kernel(cuda.jit(function), args, "sm_90a")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("mm", EACH_EXECUTION, ids=repr)
def test_products_with_one_tile_in_common_link(mm):
    operand = array(mm.dtype, 3)
    binary = link(batched_kernels.gemm_common(mm), (operand, array(mm.dtype), array(mm.c_dtype, 3)), "sm_90a")
    binary.assert_clean()
    assert binary.shared_bytes < registers(mm).shared_bytes
