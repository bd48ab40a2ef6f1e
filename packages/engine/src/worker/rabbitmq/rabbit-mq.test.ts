import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openBed, submitted, work, type Bed } from '../../../test/bed.ts'
import { rabbitMq } from './rabbit-mq.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
afterEach(() => {
  vi.doUnmock('amqplib')
})
afterAll(() => bed.close())

describe('rabbitMq', () => {
  test.each(['', 'not a url', 'http://localhost', 'amqp://', 'localhost:5672', undefined, 5672])(
    'refuses %s as its url',
    (url) => {
      expect(() => rabbitMq({ url: url as string })).toThrow(expect.objectContaining({ code: 'options_invalid' }))
    },
  )

  test('says no password in its errors', () => {
    expect(() => rabbitMq({ url: 'http://user:secret@localhost' })).toThrow(/of the form http:\/\/localhost;/)
  })

  test('says what to install where amqplib is missing, when the engine is opened', async () => {
    vi.doMock('amqplib', () => {
      throw new Error("Cannot find package 'amqplib'")
    })
    await expect(bed.open({ wakeUp: rabbitMq({ url: 'amqp://localhost' }) })).rejects.toMatchObject({
      code: 'rabbitmq_missing',
      message: expect.stringContaining('npm install amqplib'),
    })
  })

  test('needs no broker to open an engine, to submit, to work and to close', async () => {
    const lines: string[] = []
    const note = (_: unknown, message: string) => lines.push(message)
    const engine = await bed.open({
      wakeUp: rabbitMq({ url: 'amqp://127.0.0.1:1' }),
      logger: { info: note, warn: note, error: note },
    })
    const controller = new AbortController()
    const worked = engine.work({ pollMs: 20, signal: controller.signal })
    const jobId = await submitted(engine.submit(work, {}))
    await expect.poll(async () => (await engine.get(jobId))?.status, { timeout: 5_000 }).toBe('completed')
    await expect.poll(() => lines).toEqual(expect.arrayContaining(['rabbitmq_connection_lost', 'wake_up_not_sent']))
    controller.abort()
    await worked
    await engine.close()
  })
})
