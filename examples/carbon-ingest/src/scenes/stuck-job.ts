import { createReadStream } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import { factorIngest } from '../factor-ingest.ts'
import { recoverJob } from '../operator.ts'
import { sampleYear } from '../sample.ts'
import { showReport } from '../show-report.ts'
import { factorFiles, type World } from '../world.ts'

const tryEveryMs = 250

/** A worker waits for an answer that never comes; an operator has its job run again, once it may be taken for stuck. */
export async function stuckJob(world: World): Promise<void> {
  const { engine, screen, signal } = world
  screen.title('4. A stuck job is recovered')
  const service = await openService()
  const pipelineId = randomUUID()
  const payload = { year: sampleYear, method: 'api' as const, source: service.address }
  const answer = await engine.submit(factorIngest, payload, { pipelineId, by: 'ada' })
  if (!answer.submitted) throw new Error(`The factors were not submitted: ${answer.why}.`)
  await service.asked
  screen.say(`  A worker asks ${service.address} for revised factors, and gets no answer.`)
  let told = ''
  for (;;) {
    const { recovered, message } = await recoverJob(engine, answer.jobId, 'ada')
    if (message !== told) screen.say(`  ada: ${message}.`)
    told = message
    if (recovered) break
    await delay(tryEveryMs, undefined, { signal })
  }
  screen.say()
  await world.follow(pipelineId)
  service.close()
  const [report] = await world.reports()
  if (report !== undefined)
    showReport(screen, report, { activities: world.activities.file, factors: factorFiles.revised })
}

/** A service for factors, which never answers the first request. */
async function openService(): Promise<{ address: string; asked: Promise<unknown>; close: () => void }> {
  let requests = 0
  const server = createServer((_, response) => {
    requests += 1
    if (requests > 1) createReadStream(factorFiles.revised).pipe(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { address: `http://127.0.0.1:${port}/factors/2025.csv`, asked: once(server, 'request'), close }
}
