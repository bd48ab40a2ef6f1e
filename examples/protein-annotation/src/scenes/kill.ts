import type { Family } from '../show/view.ts'
import { needSample, ofOperation, start, storedOnce, type Scene, type Stage } from './stage.ts'

const model = { k: 3, dimensions: 128 }

export const kill: Scene = {
  name: 'kill',
  title: 'A worker process is killed',
  about: 'SIGKILL, while it computes and writes. Its leases pass, and the other worker does its batches again.',
  async play(stage) {
    const { engine, view, signal, workers } = stage
    await needSample(stage)
    const simulate = { device_ms: 300, write_ms: 300 }
    const jobId = await start(stage, stage.operations.computeEmbeddings, { dataset: 'sample', model, simulate })
    const families = await view.watch([jobId], signal, (seen) => writingWorker(seen) !== undefined)
    const victim = await pidOf(stage, writingWorker(families))
    await workers.kill(victim)
    workers.start()
    view.say(`  ⚡ worker process ${victim} is killed, and another one started`)
    const [family] = (await view.watch([jobId], signal)) as [Family]
    const events = await engine.events(jobId, { descendants: true, limit: 10_000 })
    const expired = events.filter(({ event }) => event === 'job.expired').length
    return [
      {
        holds: expired > 0,
        text: `${expired} jobs of the dead worker were taken from it when their leases had passed`,
      },
      { holds: family.root.status === 'completed', text: `the parent has ${family.root.status}` },
      await storedOnce(stage, family, model),
    ]
  },
}

/** The id of a worker that is in the middle of a write. */
function writingWorker([family]: readonly Family[]): string | undefined {
  return ofOperation(family?.descendants ?? [], 'store_embeddings', 'running')[0]?.lockedBy
}

async function pidOf({ engine }: Stage, workerId: string | undefined): Promise<number> {
  const worker = (await engine.workers()).find((one) => one.workerId === workerId)
  if (worker === undefined) throw new Error(`There is no worker ${workerId}.`)
  return worker.pid
}
