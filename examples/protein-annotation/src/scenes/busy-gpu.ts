import type { Model } from '../sequences/embedding.ts'
import type { Family } from '../show/view.ts'
import { needSample, start, storedOnce, type Scene, type Stage } from './stage.ts'

const [coarse, fine] = [
  { k: 2, dimensions: 512 },
  { k: 4, dimensions: 512 },
]
const simulate = { device_ms: 500 }

export const busyGpu: Scene = {
  name: 'busy-gpu',
  title: 'The GPU is taken',
  about: 'Two compute_embeddings at once. One takes the GPU; the other raises RetryLater until it is free.',
  async play(stage) {
    await needSample(stage)
    const { computeEmbeddings } = stage.operations
    // Before the batches of the other one: it is to look while the GPU is in use.
    const compute = (model: Model) =>
      start(stage, computeEmbeddings, { dataset: 'sample', model, simulate }, { priority: -1 })
    const jobIds = [await compute(coarse), await compute(fine)]
    const families = (await stage.view.watch(jobIds, stage.signal)) as [Family, Family]
    const [first, second] = families.toSorted((a, b) => (endOf(a) < endOf(b) ? -1 : 1)) as [Family, Family]
    const sentBack = await timesSentBack(stage, second)
    const began = second.descendants.map(({ startedAt }) => startedAt ?? '').toSorted()[0] ?? ''
    return [
      {
        holds: sentBack > 0 && second.root.attempts === 1,
        text: `the second looked ${sentBack} times in vain, and has spent ${second.root.attempts} attempt`,
      },
      { holds: began > endOf(first), text: 'its first batch began after the first job had ended' },
      await storedOnce(stage, families[0], coarse),
      await storedOnce(stage, families[1], fine),
    ]
  },
}

async function timesSentBack({ engine }: Stage, { root }: Family): Promise<number> {
  // One event for all of them, which counts.
  const later = (await engine.events(root.jobId)).find(({ event }) => event === 'job.retry_later')
  return later === undefined ? 0 : Number((later.fields as { times: number }).times)
}

function endOf({ root }: Family): string {
  return root.completedAt ?? ''
}
