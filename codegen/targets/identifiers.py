"""Names as C identifiers. A call of a program that is compiled already needs no more of C than this."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence

RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    _Bool _Complex _Imaginary _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert _Thread_local
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return
    co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export
    false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename
    typeof using virtual wchar_t xor xor_eq linux unix main
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t intptr_t uintptr_t ptrdiff_t
    NULL INFINITY NAN SIZE_MAX PTRDIFF_MAX INT32_MIN INT64_MIN INT64_C UINT64_C WITH_MPI WITH_NCCL
    RETURN_v3 RETURN_v4 RETURN_NEWEST MOST_THREADS
    MOST_SCRATCH ENOUGH INLINED MOST_BLOCKS BLOCK_WORK BLOCK_TERMS BLOCK_ELEMENTS LINE MAX_LANES MIN_LANES CHOSEN_LANES
    LEAVES call_stop IN_REGISTER HAS_VECTORS IN_PARALLEL DO_PRAGMA THREADS THREAD TEAM
    CALL_PART SHARE_LOOP SHARE_STOPPABLE ADD_HALF SUM_LANES_2 SUM_LANES_4 SUM_LANES_8 SUM_LANES_16 SUM_LANES_32
    SUM_LANES_64 AT_A_TIME RESIDENT_BLOCKS RESIDENT_THREADS LESSER
    running_stop ALIGNED SCALAR STRAIGHT FUSED MOST_DIVIDED quad quad_anywhere SHUFFLED VECTOR HELD
    stored_array LONGEST_NAME STATE_NAMES json_reader json_entry COPIED_BYTES MOST_SENT PART_OF_MESSAGE BYTES_BEFORE
    TYPE_OF_LETTER begun_sum NCCL_TYPE HALF_VECTORS
    communicator Memory TRY
    threadIdx blockIdx blockDim gridDim warpSize dim3 clock64 dadd dmul dsub
    assert errno EOF BUFSIZ RAND_MAX EXIT_SUCCESS EXIT_FAILURE stdin stdout stderr offsetof setjmp va_arg
    va_copy va_end va_start
    jmp_buf sigjmp_buf sigsetjmp siglongjmp PART_STOP
    isfinite isinf isnan isnormal fpclassify isgreater isgreaterequal isless islessequal islessgreater isunordered
    abort abs alloca atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clearerr clock close ctime div exec
    execl execle execlp execv execve execvp exit fclose feof ferror ffs ffsl ffsll fflush fgetc fgets fopen fork fprintf
    fputc fputs fread free freopen fscanf fseek ftell fwrite getc getchar getenv gets gettext dgettext dcgettext index
    isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit
    iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit
    imaxabs imaxdiv labs ldiv link llabs lldiv longjmp malloc memchr memcmp memcpy memmove mempcpy memset mktime open
    perror pipe posix_memalign printf putc putchar puts qsort raise rand read realloc remove rename rewind rindex scanf
    select setbuf setvbuf signal snprintf sprintf srand sscanf stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll
    strcpy strcspn strdup strerror strfmon strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk
    strrchr strspn strstr strtod strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system time tmpfile
    tmpnam toascii tolower toupper towlower towupper ungetc vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf
    wait write test
    """.split()  # noqa: SIM905 - a list of two hundred words reads better as words
)
"""Words that no generated name may be: keywords of C and C++, names of headers, macros and types of our own."""

LOCAL = frozenset(
    """
    greatest reciprocal size lane half block warp start filled element in_registers tile_row tile_rows tile_lanes vector
    row first_row first_lane rows_at_once vectors_at_once stride step given sums partials loaded loaded0 loaded1 loaded2
    loaded3 stored packing packs sums_so_far partial_count sizes work plan bytes scratch scratch_bytes arrays lengths
    status total array team sharing iterations first last at arguments aligned base Index outside infinite stream own
    workers memory done thread threads blocks from until worker inside here_stop part_stop
    """.split()  # noqa: SIM905 - as above
)
"""Variables of our functions, which arrays and axes stand beside."""

FUNCTIONS = frozenset(
    """
    blocks_of several start_in are_below_i32 are_below_i64 quad_past past_end blocks padded add share
    threads_with_scratch shares scratches start_of overlap measure check derive multiply compose where_bool are_below
    hashed_path round_philox philox random_words uniform_of_word fill_uniform fill_uniform_f64 write_header save_arrays
    skip_byte skip_if skip_over read_text read_number read_shape read_notes read_array begin_entries next_entry
    path_of_entry find_places next_prefix find_arrays look_into load_arrays write_elements read_elements clear_elements
    copied_at outside_i32 outside_i64 look_at_i32 look_at_i64 status_of_indices infinite_f32 infinite_f64
    look_for_infinite_f32 look_for_infinite_f64 random_numbers equal_numbers fill_random fill_equal begin_ranks
    end_ranks count_ranks status_of_ranks sum_over_ranks sum_over_others begin_sum end_sums status_before_sum copied
    add_numbers add_array has_v3 has_v4 sizes arrays work memory done plan status stream base
    """.split()  # noqa: SIM905 - as above
)
"""Functions of our headers, which ``library.prefixed`` renames in calls, and variables where a program is called."""

MATHEMATICS = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim
    finite floor fma fmax fmin fmod frexp gamma gamma_r hypot ilogb isinf isnan j0 j1 jn ldexp lgamma lgamma_r llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo
    rint round scalb scalbln scalbn signbit significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin csinh
    csqrt ctan ctanh
    cospi cyl_bessel_i0 cyl_bessel_i1 erfcinv erfcx erfinv fdivide norm norm3d norm4d normcdf normcdfinv rcbrt rhypot
    rnorm rnorm3d rnorm4d rsqrt sincospi sinpi
    """.split()  # noqa: SIM905 - as above
)
"""Functions of the C library and of CUDA's that compilers know, each also with ``f`` or ``l`` appended."""

FAMILIES = (
    *("omp_", "pthread_", "posix_", "sched_", "mtx_", "cnd_", "thrd_", "tss_", "sem_", "mq_"),
    *("aio_", "atomic_", "test_", "TEST_", "il_", "IL_"),
)
"""Beginnings of the names of whole families; the last four are those of our self-test and of our headers."""


@functools.cache
def _library() -> frozenset[str]:
    """Names that the headers which we include declare besides, and that the C library of a system exports.

    A name is taken also with ``f`` or ``l`` appended: a function of such a name would stand in the place of the
    library's in any program it is linked to. The file is read when the first name is looked up.
    """
    path = os.path.join(os.path.dirname(__file__), "library_names.txt")  # noqa: PTH118, PTH120 - first calls come here
    with open(path, encoding="ascii") as file:  # noqa: PTH123
        return frozenset(file.read().split())


BEGINNINGS = (
    *("n_", "start_", "stop_", "end_", "stored_", "late_", "loaded_", "sums_"),
    *("TILE_", "BLOCK_", "STRIP_", "STRIPS_", "PER_THREAD_", "THREADS_"),
)
ENDINGS = ("_block", "_chunk", "_stop", "_of_warps")
"""Beginnings and endings of the names of variables of our functions."""

WIDTHS = ("16", "32", "64", "128")
VECTORS = frozenset(
    f"{sign}{kind}"
    for sign in ("", "u")
    for kind in ("char", "short", "int", "long", "longlong", "float", "double")
)
"""CUDA's types of vectors, before the number of their elements."""
MINIMA = frozenset({"llmin", "llmax", "ullmin", "ullmax", "umin", "umax"})
"""The names of ``_patterns`` that are nothing but small letters."""


def _is_marked(name: str) -> bool:
    """Whether a name may be one of ``_patterns``: it has what each of them has one of."""
    return (
        (not name.islower() and 2 < len(name))
        or name.startswith(("_", "cuda"))
        or name in MINIMA
        or any(width in name for width in WIDTHS)
        or name.rstrip("1234").removeprefix("make_") in VECTORS
    )


@functools.cache
def _patterns() -> re.Pattern[str]:
    """Names that are taken by the kind; made when a name may be one, since making it takes three milliseconds."""
    return re.compile(
        r"_.*"  # what belongs to compilers
        r"|(max|min|square|tf32|bf16|exp|ln|tanh|erf|pow|sin|cos)_(f32|f64|i32|i64)|i(32|64)_of_f(32|64)"  # our own
        r"|pair_bf16|bf16_of_f32|add_product_\d+x\d+x\d+"
        r"|(add|sub|floor_divide|where)_(f32|f64|i32|i64)|((max|min)_lanes|order(ed)?_(max|min))_f(32|64)"
        r"|(bits_of|muladd|power|quarters|wave|quotient|divides|divide_row)_f(32|64)|f(32|64)_of_bits"
        r"|(U?INT(_LEAST|_FAST)?\d+|U?INTPTR|U?INTMAX|PTRDIFF|SIZE|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX|C|WIDTH)"
        r"|(transpose(_square|_half|_short)?|line)_[fi](32|64)|(lanes_)?[fi](32|64)x\d+(u|m|_\w+)?"
        r"|(M|FP|MATH)_[A-Z0-9_]+(f(\d+x?)?|l)?|(HUGE_VAL|SNAN)(_?F\d*X?|L)?"
        r"|(PRI|SCN)[diouxX][A-Z0-9]+"  # macros of headers
        r"|cuda\w*|CU\w+|atomic[A-Z]\w*|(tex|surf)(1D|2D|3D|Cubemap)\w*|nccl[A-Z]\w*|MPI_\w+"  # CUDA's, NCCL's, MPI's
        r"|(make_)?u?(char|short|int|long|longlong|float|double)[1-4](_16a|_32a)?|(ll|ull|u)(min|max)"
        r"|f(32|64)x?(add|sub|mul|div|fma|sqrt)(f(32|64|128)x?|l)"
    )


@functools.lru_cache(maxsize=4096)
def identifier(name: str) -> str:
    """The name of an array or an axis in C: one that C, its library or our own text uses gets an underscore."""
    bare = name.rstrip("_")
    variable = bare in LOCAL or bare.startswith(BEGINNINGS) or bare.endswith(ENDINGS)
    return f"{name}_" if variable or _is_taken(name) else name


def loop_identifier(name: str, others: Sequence[str]) -> str:
    """The name of a loop variable beside others: ``j_1`` of ``j1``, which is a function of C."""
    spelled = identifier(name)
    if spelled == name:
        return name
    apart = "_".join(filter(None, re.split(r"(\d+)$", name)))
    return spelled if apart in others else identifier(apart)


@functools.lru_cache(maxsize=4096)
def function_identifier(name: str) -> str:
    """The name of a function of a program, and of a type: a taken one gets ``_fn``.

    ``NAME_work`` and its like follow from it, and C++ reserves names with two underscores in a row.
    """
    bare = re.sub(r"(_fn|_)+$", "", name)
    taken = bare in FUNCTIONS or _is_taken(bare or name)
    return f"{name}_fn" if taken else name


@functools.lru_cache(maxsize=4096)
def member_identifier(name: str) -> str:
    """The name of a member of a struct, in the same manner."""
    return f"{name}_" if _is_taken(name) else name


def initial_fields(extents: Mapping[str, int]) -> list[str]:
    """The fields of a struct of sizes, each with its value: ``.m = 2``, ``.n = 3``."""
    return [f".{member_identifier(name)} = {extent}" for name, extent in extents.items()]


def initializer(extents: Mapping[str, int]) -> str:
    """The value of a struct of sizes: ``{.m = 2, .n = 3}``."""
    return f"{{{', '.join(initial_fields(extents)) or '0'}}}"


def _is_taken(name: str) -> bool:
    """Whether C, its library or our own text uses a name, or one that it is with underscores after it."""
    bare = name.rstrip("_")
    known = bare in RESERVED or _is_function(bare)
    known = known or (bare[-1:] in ("f", "l") and _is_function(bare[:-1]))
    known = known or bare.startswith(FAMILIES) or bare.endswith("_t")
    return known or (_is_marked(bare or name) and _is_patterned(bare or name))


def _is_function(name: str) -> bool:
    return name in MATHEMATICS or name in _library()


def _is_patterned(name: str) -> bool:
    """Whether a name is taken by its kind; ``sqrtf64x`` is by what it is a kind of."""
    if _patterns().fullmatch(name) is not None:
        return True
    sized = re.fullmatch(r"(\w+?)(f(16|32|64|128)x?|d(32|64|128))(_r|_l)?", name)
    return sized is not None and (
        _is_function(sized[1])
        or sized[1] in RESERVED
        or _is_function(f"{sized[1]}f")
        or f"{sized[1]}f" in RESERVED
    )
