// @ts-check
import { setTimeout as pause } from 'node:timers/promises'

/** Something did not happen in the time it was given: a result of its own, not a fault. */
export class OutOfTime extends Error {
  /** @param {number} seconds */
  constructor(seconds) {
    super(`Not within ${seconds} s.`)
    this.seconds = seconds
  }
}

/** What the promise gives, or OutOfTime. What it stands for goes on: its process is ended with the cell. */
export async function within(seconds, promise) {
  const late = {}
  const first = await Promise.race([promise, pause(seconds * 1000, late, { ref: false })])
  if (first === late) throw new OutOfTime(seconds)
  return first
}
