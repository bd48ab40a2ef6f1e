import type { Logger } from '../logger.ts'

/**
 * Has old jobs removed once in `everyMs`, first after some part of it, so that workers that start together do it one
 * after another. The answer ends it; what has begun goes on.
 */
export function retainRegularly(retain: () => Promise<unknown>, everyMs: number, logger: Logger): () => void {
  let timer: NodeJS.Timeout
  let stopped = false
  const next = (delayMs: number) => {
    if (!stopped) timer = setTimeout(() => void run(), delayMs)
  }
  const run = async () => {
    try {
      await retain()
    } catch (error) {
      if (!stopped) logger.warn({ err: error }, 'retain_failed')
    }
    next(everyMs)
  }
  next(everyMs * Math.random())
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
