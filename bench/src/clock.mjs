// @ts-check

/** Milliseconds of the machine's steady clock: the same in every process of this machine. */
export function now() {
  return Number(process.hrtime.bigint()) / 1e6
}
