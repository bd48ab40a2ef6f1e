import { annotate } from './annotate.ts'
import { badBatch } from './bad-batch.ts'
import { busyGpu } from './busy-gpu.ts'
import { cancel } from './cancel.ts'
import { kill } from './kill.ts'
import { retries } from './retries.ts'
import type { Scene } from './stage.ts'

/** In the order in which they are played. */
export const scenes: readonly Scene[] = [annotate, busyGpu, retries, badBatch, cancel, kill]
