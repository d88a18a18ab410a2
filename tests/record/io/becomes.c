/* Writes 5 bytes, and becomes itself, with the word `second`, which writes 3 bytes and exits with 7. Before that a child
   writes 4 bytes and becomes itself with `other`, and another one is killed. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void writes(const char *name, int bytes) {
  int file = open(name, O_CREAT | O_WRONLY | O_APPEND, 0600);
  if (write(file, "12345", bytes) != bytes || close(file)) _exit(9);
}

int main(int count, char **words) {
  if (count > 1) {
    if (words[1][0] == 's') writes("second", 3);
    return 7;
  }
  writes("first", 5);
  pid_t child = fork();
  if (!child) {
    writes("child", 4);
    execl(words[0], words[0], "other", (char *)0);
  }
  waitpid(child, 0, 0);
  child = fork();
  if (!child) {
    writes("killed", 2);
    kill(getpid(), SIGKILL);
  }
  waitpid(child, 0, 0);
  execl(words[0], words[0], "second", (char *)0);
  return 8;
}
