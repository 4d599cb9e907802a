"""Names as C identifiers. A call of a program that is compiled already needs no more of C than this."""

from __future__ import annotations

import functools
import re

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
    NULL INFINITY NAN SIZE_MAX PTRDIFF_MAX INT32_MIN INT64_MIN INT64_C UINT64_C MOST_THREADS MOST_SCRATCH ENOUGH INLINED
    FETCH SCALAR FUSED MOST_DIVIDED largest reciprocal size
    lane half block start filled element quad quad_anywhere in_registers quad_past past_end SHUFFLED
    tile_row tile_rows tile_lanes part row first_row first_lane rows_at_once parts_at_once stride step given sums blocks
    VECTOR HELD filling fills
    sizes work plan bytes scratch scratch_bytes arrays lengths status total padded thread threads add array
    team sharing share shares scratches iterations first last at start_of
    arguments aligned overlap measure check base derive
    assert errno EOF BUFSIZ RAND_MAX EXIT_SUCCESS EXIT_FAILURE stdin stdout stderr offsetof setjmp va_arg
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
    wait write
    """.split()  # noqa: SIM905 - a list of two hundred words reads better as words
)
"""Words that a generated name must not be: keywords of C and C++, names of headers and of our own helpers."""

MATHEMATICS = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim
    finite floor fma fmax fmin fmod frexp gamma gamma_r hypot ilogb isinf isnan j0 j1 jn ldexp lgamma lgamma_r llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo
    rint round scalb scalbln scalbn signbit significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin csinh
    csqrt ctan ctanh
    """.split()  # noqa: SIM905 - as above
)
"""Functions of the C library that compilers know by themselves, each also with ``f`` or ``l`` appended."""


def _is_marked(name: str) -> bool:
    """Whether a name may be one of ``_patterns``: it has what each of them has one of."""
    return (
        not name.islower()
        or name.startswith(("n_", "_", "start_", "stop_", "end_", "stored_", "late_"))
        or name.endswith(("_block", "_chunk", "_stop"))
        or "32" in name
        or "64" in name
    )


@functools.cache
def _patterns() -> re.Pattern[str]:
    """Names that are taken by the kind; made when a name may be one, since making it takes three milliseconds."""
    return re.compile(
        r"n_.*|_.*"  # extents; what belongs to compilers
        r"|(max|min|square|exp|ln|tanh|pow|sin|cos)_(f32|f64|i32|i64)|i(32|64)_of_f(32|64)|ceil_i64"  # our own helpers
        r"|(bits_of|muladd|power|quarters|wave|quotient|divides)_f(32|64)|f(32|64)_of_bits"
        r"|(U?INT(_LEAST|_FAST)?\d+|U?INTPTR|U?INTMAX|PTRDIFF|SIZE|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX|C|WIDTH)"
        r"|transpose(_square|_half)?_[fi](32|64)|[fi](32|64)x\d+(u|m|_\w+)?"
        r"|\w+_(block|chunk|stop)|(start|stop|end|stored|late)_\w+"  # variables of our own, beside those of loops
        r"|(M|FP|MATH)_[A-Z0-9_]+|HUGE_VAL[FL]?|(PRI|SCN)[diouxX][A-Z0-9]+"  # macros of headers
    )


def identifier(name: str) -> str:
    """A name as a C identifier: a name that C, its library or our own text uses gets an underscore."""
    bare = name.rstrip("_")
    known = (
        bare in RESERVED
        or bare in MATHEMATICS
        or (bare[-1:] in ("f", "l") and bare[:-1] in MATHEMATICS)
    )
    known = known or (_is_marked(bare or name) and _patterns().fullmatch(bare or name) is not None)
    return f"{name}_" if known else name
