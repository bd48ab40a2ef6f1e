import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

// A tag names one process for good: its pid, and when it started. The pid alone does not: it is given to others again,
// in containers even to the first processes of every run. Tags are parts of file names: digits, letters and hyphens.
//
// Limit: a process of another container on the same folder looks dead from here. One folder belongs to one container.

const unknownStart = 'unknown'

/** The tag of this process. */
export function ownTag(): string {
  return tagOf(process.pid) ?? `${process.pid}_${unknownStart}`
}

/** The tag of the process that has this pid now. */
export function tagOf(pid: number): string | undefined {
  const start = startOf(pid)
  return start === undefined ? undefined : `${pid}_${start}`
}

/** Whether the tagged process, and not just some process with its pid, is running. */
export function isRunning(tag: string): boolean {
  const [pid = '', taggedStart] = tag.split('_')
  const start = startOf(Number(pid))
  if (start === undefined) return false
  // Where the start of a process cannot be told (Windows, a hidden /proc), the pid has to do.
  return start === taggedStart || start === unknownStart || taggedStart === unknownStart
}

function startOf(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
  if (process.platform === 'linux') return startInProc(pid)
  if (process.platform === 'win32') return answersSignals(pid) ? unknownStart : undefined
  return startFromPs(pid)
}

// Clock ticks since the boot, and which boot: neither moves when the clock is set.
function startInProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the name in parentheses, which may hold anything; the state is the third, the start the 22nd.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie has ended; only its parent has not looked yet.
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : `${bootId()}-${fields[19]}`
  } catch {
    return answersSignals(pid) ? unknownStart : undefined
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').slice(0, 8)
  } catch {
    return 'boot'
  }
}

/** macOS and the BSDs; to the second, which is enough beside a pid. */
export function startFromPs(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    const [state = 'Z', ...date] = line.split(/\s+/)
    return state.startsWith('Z') ? undefined : String(Date.parse(`${date.join(' ')} UTC`) / 1000)
  } catch {
    return undefined // ps ends with 1 where there is no such process
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
