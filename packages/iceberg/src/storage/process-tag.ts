import { readFileSync } from 'node:fs'

// A tag names one process for good: its pid, and on Linux when it started, for a pid is given to others again.
// Limit: a process of another container on the same folder looks dead from here, so staging folders are not shared.

/** The tag of this process, fit for a file name. */
export function ownTag(): string {
  return `${process.pid}-${startOf(process.pid) ?? 'unknown'}`
}

/** Whether the tagged process is still running. */
export function isRunning(tag: string): boolean {
  const [pid = '', started] = tag.split('-')
  if (!answersSignals(Number(pid))) return false
  const start = startOf(Number(pid))
  return start === undefined || started === 'unknown' || start === started
}

function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the name in parentheses, which may hold anything; the start is the 22nd.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
