// @ts-check
import { cpus, loadavg, release, totalmem, type } from 'node:os'

/** What the numbers were measured on. */
export function machine() {
  const [first] = cpus()
  return {
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    os: `${type()} ${release().split('-')[0]}`,
    node: process.version,
  }
}

/** How many processes wanted the processor in the last minute, on average. */
export function load() {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100
}
