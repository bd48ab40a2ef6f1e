/** A group of its own, so that what a handler has started ends with it, and a terminal's Ctrl-C does not reach it. */
export const ownGroup = process.platform !== 'win32'

/** Kills a handler process and everything that is still in its group. What is gone already is no error. */
export function killGroup(pid: number): void {
  try {
    process.kill(ownGroup ? -pid : pid, 'SIGKILL')
  } catch {
    // There is nobody left in it.
  }
}
