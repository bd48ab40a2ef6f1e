import type { Family } from '../show/view.ts'
import { needSample, start, storedOnce, type Scene, type Stage } from './stage.ts'

const models = [
  { k: 2, dimensions: 512 },
  { k: 4, dimensions: 512 },
]
const simulate = { device_ms: 300 }

export const busyGpu: Scene = {
  name: 'busy-gpu',
  title: 'The GPU is taken',
  about: 'Two compute_embeddings at once. One takes the GPU; the other raises RetryLater until it is free.',
  async play(stage) {
    await needSample(stage)
    const { computeEmbeddings } = stage.operations
    const jobIds: string[] = []
    for (const model of models)
      jobIds.push(await start(stage, computeEmbeddings, { dataset: 'sample', model, simulate }))
    const families = await stage.view.watch(jobIds, stage.signal)
    const [first, second] = families.toSorted((a, b) => (endOf(a) < endOf(b) ? -1 : 1)) as [Family, Family]
    const sentBack = await timesSentBack(stage, second)
    const began = second.descendants.map(({ startedAt }) => startedAt ?? '').toSorted()[0] ?? ''
    return [
      {
        holds: sentBack > 0 && second.root.attempts === 1,
        text: `the second looked ${sentBack} times in vain, and has spent ${second.root.attempts} attempt`,
      },
      { holds: began > endOf(first), text: 'its first batch began after the first job had ended' },
      ...(await Promise.all(
        families.map((family, nth) => storedOnce(stage, family, models[nth] ?? { k: 0, dimensions: 0 })),
      )),
    ]
  },
}

async function timesSentBack({ engine }: Stage, { root }: Family): Promise<number> {
  return (await engine.events(root.jobId)).filter(({ event }) => event === 'job.retry_later').length
}

function endOf({ root }: Family): string {
  return root.completedAt ?? ''
}
