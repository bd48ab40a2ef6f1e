// @ts-check
import { now } from './clock.mjs'

const began = now()

/** One line that is written over while it runs; on something that is no terminal, a line for each step. */
export function progress(text) {
  const seconds = Math.round((now() - began) / 1000)
  const line = `[${String(seconds).padStart(4)} s] ${text}`
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${line}`)
  else process.stderr.write(`${line}\n`)
}

export function endProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K')
}
