/* Loaded before a program's own libraries (LD_PRELOAD): all of them find a processor with fewer instructions. A program
   must not handle SIGSEGV itself.

   The system can make the instruction cpuid a fault, on processors that allow it. The handler asks the processor itself,
   and leaves out AMX, AVX-512's products of bfloats and what is newer; without HAS_AVX512 all of that, without
   HAS_AVXVNNI that too. */
#define _GNU_SOURCE
#include <signal.h>
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
/* Leaf 7.1: products of bfloats in AVX-512, of half floats in AMX, AVX-IFMA; AVX-VNNI; what extends that to other
   numbers, complex ones in AMX, and AVX10. */
#define NEWER_EAX (BIT(5) | BIT(21) | BIT(23))
#define AVXVNNI_EAX BIT(4)
#define NEWER_EDX (BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19))

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
#ifndef HAS_AVX512
        b &= ~AVX512_EBX, c &= ~AVX512_ECX, d &= ~AVX512_EDX;
#endif
    } else if (leaf == 7 && part == 1) {
        a &= ~NEWER_EAX, d &= ~NEWER_EDX;
#ifndef HAS_AVXVNNI
        a &= ~AVXVNNI_EAX;
#endif
    }
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

static void refuse(void) { /* the C library may not be ready yet for more than this */
    const char text[] = "this processor, or its virtual machine, does not let programs hide instructions\n";
    ssize_t written = write(2, text, sizeof(text) - 1);
    _exit(written < 0 ? 1 : NOT_HERE);
}

__attribute__((constructor(101))) static void begin(void) {
    struct sigaction action = {0};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, SET_CPUID, 0)) refuse();
}
