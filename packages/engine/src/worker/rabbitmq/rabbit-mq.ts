import type { WakeUpTransport } from '../../wake.ts'
import { RabbitMqWakeUp } from './consumer.ts'
import { checkUrl, loadDriver } from './driver.ts'
import { Publisher } from './publisher.ts'

/** Where the broker is. */
export interface RabbitMqOptions {
  /** An amqp: or amqps: URL, with the user, the password and the virtual host. */
  url: string
}

/**
 * Wake-ups over RabbitMQ instead of LISTEN and NOTIFY, for `openEngine({ wakeUp: rabbitMq({ url }) })`. Needs the
 * package amqplib. Jobs stay in Postgres: messages only name them, and losing one costs time, never a job.
 */
export function rabbitMq(options: RabbitMqOptions): WakeUpTransport {
  const url = checkUrl(options.url)
  return {
    open: async ({ schema, logger }) => {
      const driver = await loadDriver(url)
      const publisher = new Publisher(driver, schema, logger)
      return {
        namesJobs: true,
        send: (announcements) => publisher.send(announcements),
        listen: () => new RabbitMqWakeUp(driver, schema, logger),
        close: () => publisher.close(),
      }
    },
  }
}
