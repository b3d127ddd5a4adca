/* Loaded before a program's own libraries (LD_PRELOAD): all of them find a processor with fewer instructions.

   The system can make the instruction cpuid a fault, on processors that allow it. The handler asks the processor itself,
   and leaves out what LESSER_PROCESSOR does not name: AMX for all, AVX-512 or all of it but that with VNNI, AVX-VNNI. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SET_CPUID 0x1012 /* of arch_prctl: 0 makes cpuid a fault, for this thread and those that it starts */
#define NOT_HERE 77      /* exit status of a program that can't run on this processor */
#define BIT(n) (1u << (n))
/* Leaf 7, by register: AVX-512 ... */
#define AVX512_EBX (BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31))
#define AVX512_ECX (BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14))
#define AVX512_EDX (BIT(2) | BIT(3) | BIT(8))
/* ... and what came with AMX: its tiles, and half floats in AVX-512. */
#define AMX_EDX (BIT(22) | BIT(23) | BIT(24) | BIT(25))
/* Leaf 7.1: products of bfloats in AVX-512, of half floats in AMX; AVX-VNNI; complex numbers in AMX, and AVX10. */
#define BFLOATS_EAX (BIT(5) | BIT(21))
#define AVXVNNI_EAX BIT(4)
#define AMX_1_EDX (BIT(8) | BIT(19))

static int has_avx512, has_avxvnni;

static void allow_cpuid(int allowed) { syscall(SYS_arch_prctl, SET_CPUID, allowed); }

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *instruction = (const unsigned char *)registers[REG_RIP];
    if (instruction[0] != 0x0f || instruction[1] != 0xa2) { /* a fault of the program: it comes again, unhandled */
        signal(number, SIG_DFL);
        return;
    }
    unsigned leaf = registers[REG_RAX], part = registers[REG_RCX], a, b, c, d;
    allow_cpuid(1);
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(part));
    allow_cpuid(0);
    if (leaf == 7 && part == 0) {
        d &= ~AMX_EDX;
        if (!has_avx512) b &= ~AVX512_EBX, c &= ~AVX512_ECX, d &= ~AVX512_EDX;
    } else if (leaf == 7 && part == 1) {
        a &= ~BFLOATS_EAX, d &= ~AMX_1_EDX;
        if (!has_avxvnni) a &= ~AVXVNNI_EAX;
    }
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor(101))) static void begin(void) {
    const char *wanted = getenv("LESSER_PROCESSOR");
    has_avx512 = wanted && !strcmp(wanted, "avx512vnni");
    has_avxvnni = wanted && !strcmp(wanted, "avxvnni");
    struct sigaction action = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, SET_CPUID, 0)) {
        fprintf(stderr, "this processor, or its virtual machine, does not let programs hide instructions\n");
        _exit(NOT_HERE);
    }
}
