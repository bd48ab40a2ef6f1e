// @ts-check
import { readdirSync, readFileSync } from 'node:fs'

const msPerTick = 10 // USER_HZ is 100 on every Linux that Node runs on

/** The processor time that a Postgres server has used so far, all its processes together; Linux only. */
export function serverCpuMs(postmasterPid) {
  if (process.platform !== 'linux') return undefined
  let ticks = 0
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = statOf(entry)
    if (stat === undefined) continue
    if (Number(entry) === postmasterPid) ticks += stat.own + stat.ofEndedChildren
    else if (stat.parent === postmasterPid) ticks += stat.own
  }
  return ticks * msPerTick
}

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the name in brackets, which may hold anything; the third is the state.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const field = (nth) => Number(fields[nth - 3])
    return { parent: field(4), own: field(14) + field(15), ofEndedChildren: field(16) + field(17) }
  } catch {
    return undefined // it has ended
  }
}
