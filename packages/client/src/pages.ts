import { call, type Answered, type CallOptions, type Connection, type RouteInput } from './request.ts'
import type { AnswerOf, Route } from './route.ts'

/** The header that says where the next page begins. */
const nextAfterHeader = 'next-after'

/** Every answer of a route that has pages, one after the other. */
export async function* pages<R extends Route>(
  connection: Connection,
  route: R,
  input: RouteInput<R>,
  options: CallOptions = {},
): AsyncGenerator<AnswerOf<R>, void> {
  let after: string | null = null
  do {
    const query: object | undefined = after === null ? input.query : { ...input.query, after }
    const answered: Answered<R> = await call(connection, route, { ...input, query } as RouteInput<R>, options)
    yield answered.body
    after = answered.headers.get(nextAfterHeader)
  } while (after !== null)
}

/** What the pages hold, one by one. */
export async function* each<Page, Item>(
  answers: AsyncIterable<Page>,
  itemsOf: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void> {
  for await (const answer of answers) yield* itemsOf(answer)
}
