import type { ChannelModel, connect } from 'amqplib'
import { FencepostError } from '../../errors.ts'

export interface Driver {
  connect(name: string): Promise<ChannelModel>
}

const connectTimeoutMs = 10_000
const heartbeatSeconds = 15

/** The optional package amqplib, for one URL. */
export async function loadDriver(url: string): Promise<Driver> {
  const driver = await importDriver()
  return {
    connect: (name) =>
      driver.connect(url, {
        timeout: connectTimeoutMs,
        noDelay: true,
        keepAlive: true,
        clientProperties: { connection_name: name },
      }),
  }
}

/** Checks a URL and adds what it leaves out. Its password is in no message. */
export function checkUrl(given: unknown): string {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^amqps?:$/.test(url.protocol) || url.hostname === '') {
    const seen = url === undefined ? 'not a URL' : `of the form ${url.protocol}//${url.hostname}`
    throw new FencepostError(
      'options_invalid',
      `rabbitMq: url is ${seen}; give one such as amqp://user:pass@host:5672.`,
    )
  }
  // Without heartbeats a broker that vanished is noticed when the operating system gives up: after a quarter of an hour.
  if (!url.searchParams.has('heartbeat')) url.searchParams.set('heartbeat', String(heartbeatSeconds))
  return url.href
}

async function importDriver(): Promise<{ connect: typeof connect }> {
  try {
    // oxlint-disable-next-line no-restricted-imports -- this is where it is used
    return await import('amqplib')
  } catch (error) {
    throw new FencepostError(
      'rabbitmq_missing',
      'rabbitMq: the package amqplib is not installed. Install it beside @fencepost/engine: npm install amqplib.',
      { cause: error },
    )
  }
}
