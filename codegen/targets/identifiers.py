"""Names as C identifiers. A call of a program that is compiled already needs no more of C than this."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

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
    SUM_LANES_64
    running_stop ALIGNED PREFETCH SCALAR STRAIGHT FUSED MOST_DIVIDED quad quad_anywhere SHUFFLED VECTOR HELD
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
    largest reciprocal size lane half block warp start filled element in_registers tile_row tile_rows tile_lanes vector
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


LIBRARY = """
    BIG_ENDIAN BYTE_ORDER FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO FILE FILENAME_MAX FOPEN_MAX LITTLE_ENDIAN
    L_ctermid L_cuserid L_tmpnam MAXFLOAT MB_CUR_MAX NFDBITS PDP_ENDIAN P_tmpdir RENAME_EXCHANGE RENAME_NOREPLACE
    RENAME_WHITEOUT SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET TMP_MAX WCONTINUED WEXITED WEXITSTATUS
    WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED a64l accept
    accept4 access acct addmntent addseverity adjtime adjtimex alarm aligned_alloc alphasort alphasort64
    arc4random arc4random_buf arc4random_uniform arch_prctl argp_err_exit_status argp_error argp_failure argp_help
    argp_parse argp_program_bug_address argp_program_version argp_program_version_hook argp_state_help argp_usage
    argz_add argz_add_sep argz_append argz_count argz_create argz_create_sep argz_delete argz_extract argz_insert
    argz_next argz_replace argz_stringify asctime asctime_r asprintf at_quick_exit backtrace backtrace_symbols
    backtrace_symbols_fd basename be16toh be32toh be64toh bind bind_textdomain_codeset bindresvport bindtextdomain
    brk bsd_signal btowc c16rtomb c32rtomb c8rtomb call_once canonicalize canonicalize_file_name capget capset
    catclose catgets catopen cfgetispeed cfgetospeed cfmakeraw cfsetispeed cfsetospeed cfsetspeed chdir chflags
    chmod chown chroot clearenv clearerr_unlocked clock_adjtime clock_getcpuclockid clock_getres clock_gettime
    clock_nanosleep clock_settime clone close_range closedir closefrom closelog confstr connect copy_file_range
    creat creat64 ctermid ctime_r cuserid daddl daemon daylight dcngettext ddivl delete_module dfmal difftime
    dirfd dirname dl_iterate_phdr dladdr dladdr1 dlclose dlerror dlinfo dlmopen dlopen dlsym dlvsym dmull dn_comp
    dn_expand dn_skipname dngettext dprintf drand48 drand48_r dsqrtl dsubl dup dup2 dup3 duplocale dysize eaccess
    ecvt ecvt_r endaliasent endfsent endgrent endhostent endmntent endnetent endnetgrent endprotoent endpwent
    endrpcent endservent endsgent endspent endttyent endusershell endutent endutxent environ envz_add envz_entry
    envz_get envz_merge envz_remove envz_strip epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2
    epoll_wait erand48 erand48_r err error error_at_line error_message_count error_one_per_line
    error_print_progname errx ether_aton ether_aton_r ether_hostton ether_line ether_ntoa ether_ntoa_r
    ether_ntohost euidaccess eventfd eventfd_read eventfd_write execveat execvpe explicit_bzero faccessat fadd
    fallocate fallocate64 fanotify_init fanotify_mark fchdir fchflags fchmod fchmodat fchown fchownat fcloseall
    fcntl fcntl64 fcvt fcvt_r fd_mask fd_set fdatasync fdiv fdopen fdopendir feclearexcept fedisableexcept
    feenableexcept fegetenv fegetexcept fegetexceptflag fegetmode fegetround feholdexcept feof_unlocked
    feraiseexcept ferror_unlocked fesetenv fesetexcept fesetexceptflag fesetmode fesetround fetestexcept
    fetestexceptflag feupdateenv fexecve fflush_unlocked ffma ffsimax fgetc_unlocked fgetgrent fgetgrent_r fgetpos
    fgetpos64 fgetpwent fgetpwent_r fgets_unlocked fgetsgent fgetsgent_r fgetspent fgetspent_r fgetwc
    fgetwc_unlocked fgetws fgetws_unlocked fgetxattr fileno fileno_unlocked flistxattr flock flockfile fmaximum
    fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmemopen fminimum fminimum_mag fminimum_mag_num
    fminimum_num fminmag fmtmsg fmul fnmatch fopen64 fopencookie forkpty fpathconf fprintf_unlocked fputc_unlocked
    fputs_unlocked fputwc fputwc_unlocked fputws fputws_unlocked fread_unlocked freeaddrinfo freeifaddrs
    freelocale fremovexattr freopen64 fromfp fromfpx fsconfig fseeko fseeko64 fsetpos fsetpos64 fsetxattr fsmount
    fsopen fspick fsqrt fstat fstat64 fstatat fstatat64 fstatfs fstatfs64 fstatvfs fstatvfs64 fsub fsync ftello
    ftello64 ftime ftok ftruncate ftruncate64 ftrylockfile fts64_children fts64_close fts64_open fts64_read
    fts64_set fts_children fts_close fts_open fts_read fts_set ftw ftw64 funlockfile futimens futimes futimesat
    fwide fwprintf fwrite_unlocked fwscanf gai_cancel gai_error gai_strerror gai_suspend gammaf_r gammal_r gcvt
    get_avphys_pages get_current_dir_name get_nprocs get_nprocs_conf get_phys_pages getaddrinfo getaddrinfo_a
    getaliasbyname getaliasbyname_r getaliasent getaliasent_r getauxval getc_unlocked getchar_unlocked getcontext
    getcpu getcwd getdate getdate_err getdate_r getdelim getdents64 getdirentries getdirentries64 getdomainname
    getdtablesize getegid getentropy geteuid getfsent getfsfile getfsspec getgid getgrent getgrent_r getgrgid
    getgrgid_r getgrnam getgrnam_r getgrouplist getgroups gethostbyaddr gethostbyaddr_r gethostbyname
    gethostbyname2 gethostbyname2_r gethostbyname_r gethostent gethostent_r gethostid gethostname getifaddrs
    getipv4sourcefilter getitimer getline getloadavg getlogin getlogin_r getmntent getmntent_r getnameinfo
    getnetbyaddr getnetbyaddr_r getnetbyname getnetbyname_r getnetent getnetent_r getnetgrent getnetgrent_r getopt
    getopt_long getopt_long_only getpagesize getpass getpayload getpeername getpgid getpgrp getpid getppid
    getpriority getprotobyname getprotobyname_r getprotobynumber getprotobynumber_r getprotoent getprotoent_r
    getpt getpw getpwent getpwent_r getpwnam getpwnam_r getpwuid getpwuid_r getrandom getresgid getresuid
    getrlimit getrlimit64 getrpcbyname getrpcbyname_r getrpcbynumber getrpcbynumber_r getrpcent getrpcent_r
    getrusage getservbyname getservbyname_r getservbyport getservbyport_r getservent getservent_r getsgent
    getsgent_r getsgnam getsgnam_r getsid getsockname getsockopt getsourcefilter getspent getspent_r getspnam
    getspnam_r getsubopt gettid gettimeofday getttyent getttynam getuid getusershell getutent getutent_r getutid
    getutid_r getutline getutline_r getutmp getutmpx getutxent getutxid getutxline getw getwc getwc_unlocked
    getwchar getwchar_unlocked getwd getxattr glob glob64 glob_pattern_p globfree globfree64 gmtime gmtime_r
    gnu_dev_major gnu_dev_makedev gnu_dev_minor gnu_get_libc_release gnu_get_libc_version grantpt group_member
    gsignal gtty h_errlist h_nerr hasmntopt hcreate hcreate_r hdestroy hdestroy_r herror hsearch hsearch_r
    hstrerror htobe16 htobe32 htobe64 htole16 htole32 htole64 htonl htons iconv iconv_close iconv_open
    if_freenameindex if_indextoname if_nameindex if_nametoindex in6addr_any in6addr_loopback inet6_opt_append
    inet6_opt_find inet6_opt_finish inet6_opt_get_val inet6_opt_init inet6_opt_next inet6_opt_set_val
    inet6_option_alloc inet6_option_append inet6_option_find inet6_option_init inet6_option_next
    inet6_option_space inet6_rth_add inet6_rth_getaddr inet6_rth_init inet6_rth_reverse inet6_rth_segments
    inet6_rth_space inet_addr inet_aton inet_lnaof inet_makeaddr inet_netof inet_network inet_nsap_addr
    inet_nsap_ntoa inet_ntoa inet_ntop inet_pton init_module initgroups initstate initstate_r innetgr
    inotify_add_watch inotify_init inotify_init1 inotify_rm_watch insque ioctl ioperm iopl iruserok iruserok_af
    isalnum_l isalpha_l isatty isblank_l iscanonical iscntrl_l isctype isdigit_l iseqsig isfdtype isgraph_l
    islower_l isprint_l ispunct_l issignaling isspace_l issubnormal isupper_l iswalnum_l iswalpha_l iswblank_l
    iswcntrl_l iswctype iswctype_l iswdigit_l iswgraph_l iswlower_l iswprint_l iswpunct_l iswspace_l iswupper_l
    iswxdigit_l isxdigit_l iszero jrand48 jrand48_r kill killpg klogctl l64a lchmod lchown lckpwdf lcong48
    lcong48_r le16toh le32toh le64toh lfind lgammaf_r lgammal_r lgetxattr linkat lio_listio lio_listio64 listen
    listxattr llistxattr llogb localeconv localtime localtime_r lockf login login_tty logout logwtmp lrand48
    lrand48_r lremovexattr lsearch lseek lseek64 lsetxattr lstat lstat64 lutimes madvise makecontext mallinfo
    mallinfo2 malloc_info malloc_stats malloc_trim malloc_usable_size mallopt math_errhandling mblen mbrlen
    mbrtoc16 mbrtoc32 mbrtoc8 mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstowcs mbtowc mcheck mcheck_check_all
    mcheck_pedantic mcount memalign memccpy memfd_create memfrob memmem memrchr mincore mkdir mkdirat mkdtemp
    mkfifo mkfifoat mknod mknodat mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64
    mktemp mlock mlock2 mlockall mmap mmap64 modify_ldt moncontrol monstartup mount mount_setattr move_mount
    mprobe mprotect mrand48 mrand48_r mremap msgctl msgget msgrcv msgsnd msync mtrace munlock munlockall munmap
    muntrace name_to_handle_at nanosleep newlocale nextdown nextup nftw nftw64 ngettext nice nl_langinfo
    nl_langinfo_l nrand48 nrand48_r ns_name_compress ns_name_ntop ns_name_pack ns_name_pton ns_name_skip
    ns_name_uncompress ns_name_unpack ntohl ntohs ntp_adjtime ntp_gettime ntp_gettimex
    obstack_alloc_failed_handler obstack_exit_failure obstack_free obstack_printf obstack_vprintf on_exit open64
    open_by_handle_at open_memstream open_tree open_wmemstream openat openat64 opendir openlog openpty optarg
    opterr optind optopt parse_printf_format pathconf pause pclose personality pidfd_getfd pidfd_open
    pidfd_send_signal pipe2 pivot_root pkey_alloc pkey_free pkey_get pkey_mprotect pkey_set poll popen ppoll prctl
    pread pread64 preadv preadv2 preadv64 preadv64v2 printf_size printf_size_info printf_unlocked prlimit
    prlimit64 process_madvise process_mrelease process_vm_readv process_vm_writev profil program_invocation_name
    program_invocation_short_name pselect psiginfo psignal ptrace ptsname ptsname_r putc_unlocked putchar_unlocked
    putenv putgrent putpwent puts_unlocked putsgent putspent pututline pututxline putw putwc putwc_unlocked
    putwchar putwchar_unlocked pvalloc pwrite pwrite64 pwritev pwritev2 pwritev64 pwritev64v2 qecvt qecvt_r qfcvt
    qfcvt_r qgcvt qsort_r quick_exit quotactl rand_r random random_r rawmemchr rcmd rcmd_af re_comp
    re_compile_fastmap re_compile_pattern re_exec re_match re_match_2 re_max_failures re_search re_search_2
    re_set_registers re_set_syntax re_syntax_options readahead readdir readdir64 readdir64_r readdir_r readlink
    readlinkat readv reallocarray realpath reboot recv recvfrom recvmmsg recvmsg regcomp regerror regexec regfree
    register_printf_function register_printf_modifier register_printf_specifier register_printf_type
    remap_file_pages removexattr remque renameat renameat2 res_dnok res_hnok res_mailok res_mkquery res_nmkquery
    res_nquery res_nquerydomain res_nsearch res_nsend res_ownok res_query res_querydomain res_search res_send
    revoke rewinddir rexec rexec_af rexecoptions rmdir roundeven rpmatch rresvport rresvport_af ruserok ruserok_af
    ruserpass sbrk scandir scandir64 scandirat scandirat64 secure_getenv seed48 seed48_r seekdir semctl semget
    semop semtimedop send sendfile sendfile64 sendmmsg sendmsg sendto setaliasent setbuffer setcontext
    setdomainname setegid setenv seteuid setfsent setfsgid setfsuid setgid setgrent setgroups sethostent sethostid
    sethostname setipv4sourcefilter setitimer setlinebuf setlocale setlogin setlogmask setmntent setnetent
    setnetgrent setns setpayload setpayloadsig setpgid setpgrp setpriority setprotoent setpwent setregid setresgid
    setresuid setreuid setrlimit setrlimit64 setrpcent setservent setsgent setsid setsockopt setsourcefilter
    setspent setstate setstate_r settimeofday setttyent setuid setusershell setutent setutxent setxattr sgetsgent
    sgetsgent_r sgetspent sgetspent_r shm_open shm_unlink shmat shmctl shmdt shmget shutdown sigabbrev_np
    sigaction sigaddset sigaltstack sigandset sigblock sigdelset sigdescr_np sigemptyset sigfillset siggetmask
    sighold sigignore siginterrupt sigisemptyset sigismember siglongjmp signalfd signgam sigorset sigpause
    sigpending sigprocmask sigqueue sigrelse sigreturn sigset sigsetmask sigstack sigsuspend sigtimedwait sigwait
    sigwaitinfo sleep sockatmark socket socketpair splice sprofil srand48 srand48_r srandom srandom_r ssignal stat
    stat64 statfs statfs64 statvfs statvfs64 statx std strcasecmp_l strcasestr strchrnul strcoll_l strdupa
    strerror_l strerror_r strerrordesc_np strerrorname_np strfmon_l strfromd strfromf strfroml strfry strftime_l
    strncasecmp_l strndupa strptime strptime_l strsep strsignal strtod_l strtof_l strtoimax strtok_r strtol_l
    strtold_l strtoll_l strtoq strtoul_l strtoull_l strtoumax strtouq strverscmp strxfrm_l stty swab swapcontext
    swapoff swapon swprintf swscanf symlink symlinkat sync sync_file_range syncfs syscall sysconf sysinfo syslog
    sysv_signal tcdrain tcflow tcflush tcgetattr tcgetpgrp tcgetsid tcsendbreak tcsetattr tcsetpgrp tdelete
    tdestroy tee telldir tempnam textdomain tfind tgkill timegm timelocal timer_create timer_delete
    timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times timespec_get
    timespec_getres timezone tmpfile64 tmpnam_r tolower_l totalorder totalordermag toupper_l towctrans towctrans_l
    towlower_l towupper_l truncate truncate64 tsearch ttyname ttyname_r ttyslot twalk twalk_r tzname tzset u_char
    u_int u_long u_short ualarm ufromfp ufromfpx uint ulckpwdf ulimit ulong umask umount umount2 uname ungetwc
    unlink unlinkat unlockpt unsetenv unshare updwtmp updwtmpx uselocale ushort usleep utime utimensat utimes
    utmpname utmpxname va_list valloc vasprintf vdprintf verr verrx versionsort versionsort64 vfork vfwprintf
    vfwscanf vhangup vlimit vmsplice vswprintf vswscanf vsyslog vwarn vwarnx vwprintf vwscanf wait3 wait4 waitid
    waitpid warn warnx wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcschrnul wcscmp wcscoll
    wcscoll_l wcscpy wcscspn wcsdup wcsftime wcsftime_l wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy
    wcsnlen wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstod_l wcstof wcstof_l wcstoimax wcstok
    wcstol wcstol_l wcstold wcstold_l wcstoll_l wcstombs wcstoq wcstoul wcstoul_l wcstoull_l wcstoumax wcstouq
    wcswcs wcswidth wcsxfrm wcsxfrm_l wctob wctomb wctrans wctrans_l wctype wctype_l wcwidth wmemchr wmemcmp
    wmemcpy wmemmove wmempcpy wmemset wordexp wordfree wprintf writev wscanf
    """
"""Names that the headers which we include declare besides, and that the C library of a system exports, each also with
``f`` or ``l`` appended: a function of such a name would stand in the place of the library's in any program it is linked
to.
"""

FAMILIES = (
    *("omp_", "pthread_", "posix_", "sched_", "mtx_", "cnd_", "thrd_", "tss_", "sem_", "mq_"),
    *("aio_", "atomic_", "test_", "TEST_", "il_", "IL_"),
)
"""Beginnings of the names of whole families; the last four are those of our self-test and of our headers."""


@functools.cache
def _library() -> frozenset[str]:
    """The words of ``LIBRARY``, taken apart when the first name is looked up."""
    return frozenset(LIBRARY.split())


BEGINNINGS = ("n_", "start_", "stop_", "end_", "stored_", "late_", "loaded_", "sums_")
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
        r"|(max|min|square|tf32|bf16|exp|ln|tanh|pow|sin|cos)_(f32|f64|i32|i64)|i(32|64)_of_f(32|64)"  # our own
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


def initializer(extents: Iterable[tuple[str, int]]) -> str:
    """The value of a struct of sizes, each by its name: ``{.m = 2, .n = 3}``."""
    fields = [f".{member_identifier(name)} = {extent}" for name, extent in extents]
    return f"{{{', '.join(fields) or '0'}}}"


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
