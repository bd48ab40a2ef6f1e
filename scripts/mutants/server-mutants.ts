import type { Mutant } from './mutant.ts'

const server = 'packages/server'
const api = (name: string) => `${server}/test/${name}.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'http: a feed that reads only past the largest id it has seen',
    file: `${server}/src/events/job-feed.ts`,
    find: 'this.#feed.ofJobs([...jobs.keys()], this.floor, seen)',
    replace: 'this.#feed.ofJobs([...jobs.keys()], BigInt(Math.max(Number(this.floor), ...seen)), seen)',
    tests: [api('events')],
  },
  {
    name: 'http: a viewer who resumes without counting',
    file: `${server}/src/events/endpoints.ts`,
    find: "if (sent !== undefined && sent !== there) return '0'",
    replace: '',
    tests: [api('events')],
  },
  {
    name: 'http: a role that is not looked at',
    file: `${server}/src/access/access.ts`,
    find: 'if (allows(caller.role, role)) return caller',
    replace: 'if (caller !== undefined) return caller',
    tests: [api('access')],
  },
  {
    name: 'http: a token that is known by its id alone',
    file: `${server}/src/access/tokens.ts`,
    find: '|| !timingSafeEqual(row.hash, hashOf(token))',
    replace: '',
    tests: [api('access')],
  },
  {
    name: 'http: a revoked token that is still good',
    file: `${server}/src/access/tokens.ts`,
    find: '::text[]) and ${usable(t.now)}`',
    replace: '::text[])`',
    tests: [api('access')],
  },
  {
    name: 'http: an idempotency key that fits any request',
    file: `${server}/src/jobs/idempotency.ts`,
    find: 'kept !== undefined && kept.request_hash.equals(hash)',
    replace: 'kept !== undefined',
    tests: [api('races')],
  },
  {
    name: 'http: a body as deep as anybody likes',
    file: `${server}/src/http/json-body.ts`,
    find: 'depthOf(text, maxDepth) > maxDepth',
    replace: 'depthOf(text, maxDepth) > maxDepth + 1',
    tests: [api('hostile')],
  },
  {
    name: 'http: a server that is not closed when it is told to stop',
    file: `${server}/src/run-server.ts`,
    find: '    await server.close()\n',
    replace: '',
    tests: [api('races')],
  },
  {
    name: 'http: a viewer who need not read',
    file: `${server}/src/events/stream.ts`,
    find: 'raw.writableLength <= maxUnreadBytes',
    replace: 'raw.writableLength >= 0',
    tests: [api('slow-viewers')],
  },
  {
    name: 'tls: an answer to a client that has not shaken hands',
    file: `${server}/src/http/refuse.ts`,
    find: "|| /^ERR_(TLS|SSL)_/.test(error.code ?? '')",
    replace: '',
    tests: [api('tls')],
  },
  {
    name: 'turns: one caller goes first as long as he asks',
    file: `${server}/src/turns.ts`,
    find: 'this.#waiting.delete(caller)\n    if (own.length > 0) this.#waiting.set(caller, own)',
    replace: 'if (own.length === 0) this.#waiting.delete(caller)',
    tests: [`${server}/src/turns.test.ts`],
  },
  {
    name: 'http: answers that nobody reads are kept without end',
    file: `${server}/src/http/unread.ts`,
    find: 'while (this.#bytes > this.#maxBytes) {',
    replace: 'while (this.#bytes > Infinity) {',
    tests: [api('unread-answers')],
  },
]
