import type { ChannelModel, ConfirmChannel, Options } from 'amqplib'
import type { Logger } from '../../logger.ts'
import type { Announcements, Notice } from '../../wake.ts'
import { atMost } from '../at-most.ts'
import { Connection } from './connection.ts'
import type { Driver } from './driver.ts'
import { noticesName, queueName } from './names.ts'

/** A message that nobody took for so long is for nobody: pollers have found its job, or there is no worker. */
const messageTtlMs = 600_000
const maxUnconfirmed = 10_000
const confirmMs = 10_000
/** How long a batch waits for a connection to be made, and the end for confirmations. */
const patienceMs = 1_000

const jobMessage: Options.Publish = { persistent: true, expiration: messageTtlMs }

interface Message {
  exchange: string
  key: string
  text: string
  /** The queue of jobs that it is about. */
  queue: string | undefined
  options: Options.Publish
}

/**
 * Publishes what an engine announces. The connection is made when there is something to send. No job is kept for a
 * broker that is away, and what it does not confirm is not sent again: that much is lost, and logged. Workers find the
 * jobs by their own looking, or when it is back: then they are told of the queues, and look.
 */
export class Publisher {
  readonly #schema: string
  readonly #logger: Logger
  readonly #connection: Connection
  #channel: ConfirmChannel | undefined
  #unconfirmed = 0
  #onConfirmed: (() => void) | undefined
  /** How many messages did not get through since that was last logged, and what they were about. */
  #lost = 0
  readonly #lostQueues = new Set<string>()
  #lossLogged = false

  constructor(driver: Driver, schema: string, logger: Logger) {
    this.#schema = schema
    this.#logger = logger
    this.#connection = new Connection(driver, {
      name: `fencepost engine ${schema}`,
      logger,
      onOpen: (model) => this.#open(model),
      onLost: () => {
        this.#channel = undefined
        this.#onConfirmed?.()
      },
    })
  }

  /** Resolves when it is on its way, and no more than a bounded number of messages waits to be confirmed. */
  async send({ jobs, notices }: Announcements): Promise<void> {
    if (this.#channel === undefined) await atMost(patienceMs, this.#connection.start())
    for (const { jobId, queue } of jobs) {
      this.#publish({ exchange: '', key: queueName(this.#schema, queue), text: jobId, queue, options: jobMessage })
    }
    for (const notice of notices) this.#tell(notice)
    if (this.#unconfirmed >= maxUnconfirmed) await this.#confirmed(maxUnconfirmed / 2, confirmMs)
  }

  async close(): Promise<void> {
    await this.#confirmed(0, patienceMs)
    await this.#connection.stop()
    this.#logLoss()
  }

  async #open(model: ChannelModel): Promise<void> {
    const channel = await model.createConfirmChannel()
    channel.on('error', (error) => this.#connection.breakOff(error))
    channel.on('close', () => this.#connection.breakOff(new Error('the broker closed the channel')))
    await channel.assertExchange(noticesName(this.#schema), 'fanout', { durable: true })
    this.#channel = channel
    this.#logLoss()
    this.#lossLogged = false
    const queues = [...this.#lostQueues]
    this.#lostQueues.clear()
    for (const queue of queues) this.#tell({ kind: 'wake', queue })
  }

  #tell(notice: Notice): void {
    const queue = notice.kind === 'wake' ? notice.queue : undefined
    this.#publish({ exchange: noticesName(this.#schema), key: '', text: JSON.stringify(notice), queue, options: {} })
  }

  // A queue that no worker has declared yet does not take its message: whoever declares it also looks for himself.
  #publish({ exchange, key, text, queue, options }: Message): void {
    if (this.#channel === undefined) return this.#lose(queue)
    this.#unconfirmed += 1
    const settled = (error: unknown) => {
      this.#unconfirmed -= 1
      if (error !== null && error !== undefined) this.#lose(queue)
      this.#onConfirmed?.()
    }
    try {
      this.#channel.publish(exchange, key, Buffer.from(text), options, settled)
    } catch (error) {
      settled(error) // the channel is closed, and calls nobody back
    }
    return undefined
  }

  /** Resolves when no more than `left` messages wait; a broker that takes too long over it is taken for gone. */
  async #confirmed(left: number, timeoutMs: number): Promise<void> {
    const late = new Error(`the broker left messages unconfirmed for ${timeoutMs} ms`)
    const timer = setTimeout(() => this.#connection.breakOff(late), timeoutMs)
    while (this.#unconfirmed > left && this.#channel !== undefined) {
      await new Promise<void>((resolve) => {
        this.#onConfirmed = resolve
      })
    }
    clearTimeout(timer)
    this.#onConfirmed = undefined
  }

  // The first of many is logged at once, the rest when it is over.
  #lose(queue: string | undefined): void {
    this.#lost += 1
    if (queue !== undefined) this.#lostQueues.add(queue)
    if (this.#lossLogged) return
    this.#lossLogged = true
    setImmediate(() => this.#logLoss()) // with those that are lost in the same breath
  }

  #logLoss(): void {
    if (this.#lost === 0) return
    this.#logger.warn({ messages: this.#lost }, 'wake_up_not_sent')
    this.#lost = 0
  }
}
