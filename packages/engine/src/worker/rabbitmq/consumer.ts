import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import type { Logger } from '../../logger.ts'
import { atMost } from '../at-most.ts'
import { parseNotice } from '../notice.ts'
import type { WakeUp, WakeUpListener } from '../wake-up.ts'
import { Connection } from './connection.ts'
import type { Driver } from './driver.ts'
import { noticesName, queueName } from './names.ts'

const maxPrefetch = 65_535
const patienceMs = 1_000
const idPattern = /^[0-9a-f]{32}$/
const staleLogMs = 60_000

interface Work {
  queues: readonly string[]
  concurrency: number
  listener: WakeUpListener
}

/**
 * A worker's ear at a broker. It takes the messages of its queues, each naming a job, and acknowledges one when the
 * claim is decided: a worker that dies in between has it delivered to another. It also gets every notice, through a
 * queue of its own that goes with the connection.
 */
export class RabbitMqWakeUp implements WakeUp {
  readonly #driver: Driver
  readonly #schema: string
  readonly #logger: Logger
  #connection: Connection | undefined
  #stale = 0
  #staleLoggedAt = -staleLogMs

  constructor(driver: Driver, schema: string, logger: Logger) {
    this.#driver = driver
    this.#schema = schema
    this.#logger = logger
  }

  /** Waits a little, so that no cancel is missed by a first job; a worker whose broker is away works all the same. */
  async start(queues: readonly string[], concurrency: number, listener: WakeUpListener): Promise<void> {
    this.#connection = new Connection(this.#driver, {
      name: `fencepost worker ${this.#schema}`,
      logger: this.#logger,
      onOpen: (model) => this.#consume(model, { queues, concurrency, listener }),
      onLost: () => {},
    })
    await atMost(patienceMs, this.#connection.start())
  }

  async stop(): Promise<void> {
    await this.#connection?.stop()
  }

  async #consume(model: ChannelModel, work: Work): Promise<void> {
    const { queues, concurrency, listener } = work
    const channel = await model.createChannel()
    channel.on('error', (error) => this.#connection?.breakOff(error))
    channel.on('close', () => this.#connection?.breakOff(new Error('the broker closed the channel')))
    await channel.prefetch(Math.min(concurrency, maxPrefetch))
    await this.#consumeNotices(channel, work)
    for (const queue of queues) {
      const name = queueName(this.#schema, queue)
      await channel.assertQueue(name, { durable: true })
      await channel.consume(name, (message) => void this.#received(channel, message, queue, listener))
    }
    // Whatever was announced while nobody listened: look once.
    for (const queue of queues) listener.onWake(queue)
  }

  async #consumeNotices(channel: Channel, { queues, listener }: Work): Promise<void> {
    const exchange = noticesName(this.#schema)
    await channel.assertExchange(exchange, 'fanout', { durable: true })
    const { queue } = await channel.assertQueue('', { exclusive: true, autoDelete: true, durable: false })
    await channel.bindQueue(queue, exchange, '')
    const heard = (message: ConsumeMessage | null) => {
      if (message === null) return this.#connection?.breakOff(cancelled())
      const notice = parseNotice(message.content.toString())
      if (notice === undefined) this.#unreadable(exchange)
      else if (notice.kind === 'cancel') listener.onCancel({ jobId: notice.job_id, attemptId: notice.attempt_id })
      else if (notice.kind === 'wake' && queues.includes(notice.queue)) listener.onWake(notice.queue)
    }
    await channel.consume(queue, heard, { noAck: true })
  }

  async #received(
    channel: Channel,
    message: ConsumeMessage | null,
    queue: string,
    listener: WakeUpListener,
  ): Promise<void> {
    if (message === null) return this.#connection?.breakOff(cancelled())
    const jobId = message.content.toString()
    const readable = idPattern.test(jobId)
    if (!readable) this.#unreadable(queueName(this.#schema, queue))
    const pushed = readable ? await listener.onJob(jobId, queue) : 'not_claimed'
    if (readable && pushed === 'not_claimed') this.#wasStale()
    try {
      if (pushed === 'declined') channel.nack(message, false, true)
      else channel.ack(message)
    } catch {
      // The channel is gone. The message comes again, to whomever, and its job will not be there to be claimed.
    }
    return undefined
  }

  // Anybody who may publish can send anything: what cannot be read is nobody's.
  #unreadable(name: string): void {
    this.#logger.warn({ queue: name }, 'rabbitmq_message_unreadable')
  }

  // Ordinary under load, when jobs are found in batches before their messages come: told in one line a minute at most.
  #wasStale(): void {
    this.#stale += 1
    const now = performance.now()
    if (now - this.#staleLoggedAt < staleLogMs) return
    this.#logger.info({ messages: this.#stale }, 'rabbitmq_messages_stale')
    this.#stale = 0
    this.#staleLoggedAt = now
  }
}

function cancelled(): Error {
  return new Error('the broker cancelled the consumer: its queue was deleted, or moved to another node')
}
