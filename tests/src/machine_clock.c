/* A clock of the machine that can be set: loaded before the C library, it adds seconds to the time of day. They are the eight bytes of the
   file that MACHINE_CLOCK names. Clocks that nobody can set stay as they are. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *ahead;

__attribute__((constructor)) static void open_file(void) {
  const char *path = getenv("MACHINE_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *bytes = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (bytes != MAP_FAILED) ahead = bytes;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_REALTIME && ahead) time->tv_sec += *ahead;
  return (int)result;
}
