import type { Fence } from '../lifecycle/outcome.ts'

/** What became of a job that was pushed. `declined`: this worker has no room for it, or is stopping; others may have. */
export type Pushed = 'claimed' | 'not_claimed' | 'declined'

/** What a wake-up transport tells a worker. Missing any of it costs time, never a job. */
export interface WakeUpListener {
  /** There may be due jobs in this queue. */
  onWake: (queue: string) => void
  /** This job of this queue is due: claim it by its id. Resolves when that has been decided; never rejects. */
  onJob: (jobId: string, queue: string) => Promise<Pushed>
  /** This attempt's job was cancelled. */
  onCancel: (fence: Fence) => void
  /** Somebody views events, and wants to be told for so long when some are written. */
  onWatch?: (ms: number) => void
  /** Something was announced, or may have been while nobody listened: events may be there. */
  onEvents?: () => void
}

/** A way in which workers learn that there is work, beside looking by themselves. */
export interface WakeUp {
  /** Begins to listen. It goes on by itself through broken connections; what fails is logged, not thrown. */
  start(queues: readonly string[], concurrency: number, listener: WakeUpListener): Promise<void>
  /** Ends it. Nothing is announced afterwards. */
  stop(): Promise<void>
}
