import { connect, type Channel } from 'amqplib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Engine } from '../../src/engine.ts'
import { operation } from '../../src/operation.ts'
import { rabbitMq } from '../../src/worker/rabbitmq/rabbit-mq.ts'
import type { WorkOptions } from '../../src/worker/options.ts'
import { openBed, submitted, type Bed } from '../bed.ts'
import { conformsAsWakeUp } from './conformance.ts'
import { hasRabbitMq, startRabbitMq, type RabbitMqServer } from './rabbitmq-server.ts'

const queue = 'fencepost.fencepost.default'
const exchange = 'fencepost.fencepost.notices'
const never = 3_600_000
const soon = { timeout: 20_000 }

describe.runIf(hasRabbitMq())('wake-ups over RabbitMQ', () => {
  let server: RabbitMqServer
  beforeAll(async () => {
    server = await startRabbitMq()
  }, 120_000)
  afterAll(() => server.stop(), 60_000)

  const onChannel = async <T>(work: (channel: Channel) => Promise<T>): Promise<T> => {
    const model = await connect(server.url)
    try {
      const channel = await model.createConfirmChannel()
      await channel.assertQueue(queue, { durable: true })
      const answer = await work(channel)
      await channel.waitForConfirms()
      return answer
    } finally {
      await model.close()
    }
  }
  const listeners = async () => (await onChannel((channel) => channel.checkQueue(queue))).consumerCount

  describe('as any', () => {
    conformsAsWakeUp(
      async () => ({
        engine: { wakeUp: rabbitMq({ url: server.url }) },
        announces: {
          listeners,
          cut: async () => {
            await server.ctl('close_all_connections', 'a test cuts it')
          },
          repeat: (_, jobIds) =>
            onChannel(async (channel) => {
              for (const jobId of [...jobIds, ...jobIds]) channel.sendToQueue(queue, Buffer.from(jobId))
            }),
          rubbish: () =>
            onChannel(async (channel) => {
              const unknown = '0123456789abcdef0123456789abcdef'
              for (const text of ['', 'null', '{', '{"kind":"wake","queue":7}', '{"kind":"else"}', unknown]) {
                channel.sendToQueue(queue, Buffer.from(text))
                channel.publish(exchange, '', Buffer.from(text))
              }
              channel.sendToQueue(queue, Buffer.alloc(200_000))
              channel.publish(exchange, '', Buffer.alloc(200_000))
            }),
        },
        close: async () => {},
      }),
      { announces: true },
    )
  })

  describe('of its own', () => {
    let bed: Bed
    let ran: { jobId: string; worker: string }[] = []
    let holding: Promise<void> | undefined
    let letGo = () => {}
    const log: string[] = []
    const stops: (() => Promise<void>)[] = []
    const run = async ({ attempt }: { attempt: { jobId: string; claimed: { workerId: string } } }) => {
      ran.push({ jobId: attempt.jobId, worker: attempt.claimed.workerId })
      await holding
    }
    const one = operation('one', { payload: z.looseObject({}), run })
    const other = operation('other', { payload: z.looseObject({}), run })

    beforeAll(async () => {
      const note = (_: unknown, message: string) => log.push(message)
      const logger = { info: note, warn: note, error: note }
      bed = await openBed({ wakeUp: rabbitMq({ url: server.url }), operations: [one, other], logger })
    })
    beforeEach(async () => {
      await bed.reset()
      await onChannel((channel) => channel.purgeQueue(queue))
      ran = []
      holding = undefined
    })
    afterEach(async () => {
      letGo()
      await Promise.all(stops.splice(0).map((stop) => stop()))
    })
    afterAll(() => bed.close())

    const hold = () => {
      holding = new Promise((resolve) => {
        letGo = resolve
      })
    }
    const start = async (options: WorkOptions = {}): Promise<Engine> => {
      const engine = await bed.open()
      const controller = new AbortController()
      const worked = engine.work({ pollMs: never, sweepMs: never, ...options, signal: controller.signal })
      stops.push(async () => {
        controller.abort()
        await worked
        await engine.close()
      })
      return engine
    }
    const submit = (count: number, what = one) =>
      Promise.all(Array.from({ length: count }, () => submitted(bed.engine.submit(what, {}))))
    const messages = async () => (await onChannel((channel) => channel.checkQueue(queue))).messageCount

    test('a message is the id of a job that can be claimed, and nothing else', async () => {
      await submitted(bed.engine.submit(one, {}, { delayMs: 60_000 }))
      await submitted(bed.engine.submit(one, {}, { runAfter: new Date(Date.now() + 60_000) }))
      const jobId = await submitted(bed.engine.submit(one, {}))
      await expect.poll(messages, soon).toBe(1)
      const message = await onChannel((channel) => channel.get(queue, { noAck: true }))
      expect(message).toMatchObject({ properties: { deliveryMode: 2 } })
      expect(message && message.content.toString()).toBe(jobId)
    })

    test('many at once are announced by their queue instead', async () => {
      await start({ concurrency: 100 })
      await expect.poll(listeners, soon).toBe(1)
      const items = Array.from({ length: 12_000 }, () => ({ payload: {} }))
      await bed.engine.submitMany(one, items)
      await expect.poll(() => ran.length, { timeout: 60_000 }).toBe(12_000)
      await expect.poll(messages, soon).toBe(0)
    }, 90_000)

    test('a worker claims no more than it has room for', async () => {
      await start({ concurrency: 2 })
      await expect.poll(listeners, soon).toBe(1)
      await submit(1) // when it has run, it is no longer looking: the next ones come by their messages
      await expect.poll(async () => (await bed.engine.list({ status: 'completed' })).length, soon).toBe(1)
      hold()
      await submit(20)
      await expect.poll(() => ran.length, soon).toBe(3)
      await expect.poll(messages, soon).toBeGreaterThanOrEqual(16) // and 2 in its hands, to be given back
      const running = await bed.query(`select from fencepost.live_jobs where status = 'running'`)
      expect(running).toHaveLength(2)
      letGo()
      await expect.poll(() => ran.length, soon).toBe(21)
    })

    test('a job that a busy worker was told of goes to a free one', async () => {
      const busy = await start({ concurrency: 1 })
      await expect.poll(listeners, soon).toBe(1)
      await submit(1) // when it has run, it is no longer looking: the next one comes by its message
      await expect.poll(async () => (await bed.engine.list({ status: 'completed' })).length, soon).toBe(1)
      hold()
      await submit(1)
      await expect.poll(() => ran.length, soon).toBe(2)
      holding = undefined // for those to come
      const free = await start({ concurrency: 1 })
      await expect.poll(listeners, soon).toBe(2)
      for (let n = 3; n <= 8; n += 1) {
        await submit(1) // the broker gives them to each in turn
        await expect.poll(() => ran.length, soon).toBe(n)
      }
      expect(ran.map(({ worker }) => worker)).toEqual([busy.workerId, busy.workerId, ...Array(6).fill(free.workerId)])
    })

    test('a job that its worker has no handler for is made known to the others', async () => {
      await start({ operations: ['one'] })
      await start({ operations: ['other'] })
      await expect.poll(listeners, soon).toBe(2)
      const jobIds = [...(await submit(10, one)), ...(await submit(10, other))]
      await expect.poll(() => ran.map(({ jobId }) => jobId).sort(), soon).toEqual(jobIds.sort())
    })

    test('a broker that goes away takes no job with it, and is told of them when it comes back', async () => {
      await start()
      await expect.poll(listeners, soon).toBe(1)
      await submit(1)
      await expect.poll(() => ran.length, soon).toBe(1)
      log.length = 0
      await server.ctl('stop_app')
      await submit(5)
      await expect.poll(() => log, soon).toContain('wake_up_not_sent')
      const looking = await start({ pollMs: 100 })
      await expect.poll(() => ran.length, soon).toBe(6)
      expect(ran.slice(1).map(({ worker }) => worker)).toEqual(Array.from({ length: 5 }, () => looking.workerId))
      await stops.pop()?.()
      await submit(5)
      await server.ctl('start_app')
      await expect.poll(() => ran.length, { timeout: 40_000 }).toBe(11)
      await submit(5)
      await expect.poll(() => ran.length, soon).toBe(16)
    }, 90_000)

    test('a deleted queue is made again', async () => {
      await start()
      await expect.poll(listeners, soon).toBe(1)
      await onChannel((channel) => channel.deleteQueue(queue))
      await expect.poll(listeners, soon).toBe(1)
      await submit(1)
      await expect.poll(() => ran.length, soon).toBe(1)
    })

    test('no connection is left when everything has been closed', async () => {
      const engine = await start()
      await expect.poll(listeners, soon).toBe(1)
      await submitted(engine.submit(one, {}))
      await expect.poll(() => ran.length, soon).toBe(1)
      const names = async () => server.ctl('list_connections', 'client_properties')
      expect(await names()).toContain('fencepost worker fencepost')
      await stops.pop()?.()
      const left = await names()
      expect(left).not.toContain('fencepost worker')
      expect(left.match(/fencepost engine/g) ?? []).toHaveLength(1) // the bed's own
    })
  })
})
