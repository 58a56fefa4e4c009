/* The first process of the kernel that pages_16k.py boots: runs the lines of /commands, one after the other, prints how each ended,
 * and switches the machine off. A line is a program and its arguments, with spaces between them; "mount TYPE FOLDER" and
 * "read-only" (the root from now on) are done here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORDS = 32 };

static int check(int result, const char* what) {
  if (result >= 0) return result;
  printf("init: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  return result;
}

/* A program, whose end is an exit status as a shell counts it. */
static int start(char** words) {
  const pid_t child = fork();
  if (child == 0) {
    execv(words[0], words);
    check(-1, words[0]);
    _exit(127);
  }
  int status = 0;
  if (check(waitpid(child, &status, 0), "wait") < 0) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What a line says; 0 if it went well. */
static int run(char** words, int count) {
  if (strcmp(words[0], "mount") == 0 && count == 3) return check(mount(words[1], words[2], words[1], 0, NULL), words[2]) < 0;
  if (strcmp(words[0], "read-only") == 0) return check(mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL), "/") < 0;
  return start(words);
}

int main(void) {
  mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  const int console = check(open("/dev/console", O_RDWR), "/dev/console");
  for (int fd = 0; fd <= 2 && console >= 0; ++fd) dup2(console, fd);
  setenv("HOME", "/tmp", 1);
  setenv("TARN_PACKED_CACHE", "none", 1);
  printf("\n# page %ld\n", sysconf(_SC_PAGESIZE));
  FILE* commands = fopen("/commands", "r");
  char line[1024];
  while (commands != NULL && fgets(line, sizeof(line), commands) != NULL) {
    char* words[MOST_WORDS + 1];
    int count = 0;
    printf("# run %s", line);
    fflush(stdout);
    for (char* word = strtok(line, " \n"); word != NULL && count < MOST_WORDS; word = strtok(NULL, " \n")) words[count++] = word;
    words[count] = NULL;
    if (count > 0) printf("\n# exit %d\n", run(words, count));
    fflush(stdout);
  }
  printf("# done\n");
  fflush(stdout);
  sync();
  reboot(RB_POWER_OFF);
  return 0;
}
