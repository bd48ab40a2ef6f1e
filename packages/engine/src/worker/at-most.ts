/** Resolves when `done` does, or when the time is up; what is late goes on by itself. */
export async function atMost(timeoutMs: number, done: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs)
  })
  await Promise.race([done, late])
  clearTimeout(timer)
}
