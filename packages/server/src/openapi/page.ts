import { createHash } from 'node:crypto'
import { apiErrors, errorsOf, roles, type Route } from '@fencepost/client'
import { z } from 'zod'

const style = `
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e6e8eb); --soft: light-dark(#5b6470, #9aa4b0);
  --line: light-dark(#dde1e6, #2c333b); --paper: light-dark(#fff, #14181d); --card: light-dark(#f6f7f9, #1b2027);
  --get: light-dark(#0b6bcb, #6cb2ff); --change: light-dark(#a14b00, #ffb067); --remove: light-dark(#b3261e, #ff8a80); }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 6rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { margin: 0 } h2 { margin: 2.5rem 0 .5rem; text-transform: capitalize }
a { color: var(--get) } code, pre { font: .875em/1.5 ui-monospace, monospace }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0 }
details { border: 1px solid var(--line); border-radius: 8px; margin: .5rem 0; background: var(--card) }
summary { cursor: pointer; padding: .6rem .9rem; display: flex; gap: .75rem; align-items: baseline; flex-wrap: wrap }
summary::-webkit-details-marker { display: none }
summary code { font-weight: 600 } summary span:last-child { color: var(--soft) }
.method { font: 700 .75em ui-monospace, monospace; min-width: 3.5rem; color: var(--change) }
.GET { color: var(--get) } .DELETE { color: var(--remove) }
.inside { padding: 0 .9rem .9rem; border-top: 1px solid var(--line) }
table { border-collapse: collapse; width: 100%; margin: .75rem 0; display: block; overflow-x: auto }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; vertical-align: top; border-bottom: 1px solid var(--line) }
th { color: var(--soft); font-weight: 500 } pre { overflow-x: auto; padding: .75rem; background: var(--paper);
  border: 1px solid var(--line); border-radius: 6px } .soft { color: var(--soft) }
`

/** What lets a browser use the page's style, and nothing else. */
export const pagePolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; frame-ancestors 'none'`

/** The API as one page to read, made of the table of routes. It loads nothing. */
export function docsPage(routes: readonly Route[], version: string): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))]
  const sections = tags.map(
    (tag) =>
      `<h2 id="${tag}">${tag}</h2>${routes
        .filter((route) => route.tag === tag)
        .map(routeBlock)
        .join('')}`,
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Fencepost API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>${style}</style></head><body>
<h1>Fencepost API</h1><p class="soft">Version ${escape(version)}. <a href="/openapi.json">openapi.json</a></p>
<p>Send <code>Authorization: Bearer fp_…</code>. Roles: ${roles.join(', ')}; each may do what the one before may. On
loopback nobody needs a token as long as there is none. Errors are
<code>{"error": {"code", "message", "details"}}</code>.</p>
<nav>${[...tags, 'errors'].map((tag) => `<a href="#${tag}">${tag}</a>`).join('')}</nav>
${sections.join('')}
<h2 id="errors">errors</h2>${table(
    ['code', 'status', 'meaning'],
    Object.entries(apiErrors).map(([code, { status, meaning }]) => [`<code>${code}</code>`, status, escape(meaning)]),
  )}</body></html>
`
}

function routeBlock(route: Route): string {
  const parameters = [
    ...rowsOf(route.params, 'path'),
    ...rowsOf(route.query, 'query'),
    ...Object.entries(route.requestHeaders ?? {}).map(([name, text]) => [name, 'header', '', escape(text)]),
    ...rowsOf(route.body instanceof z.ZodObject ? route.body : undefined, 'body'),
  ]
  const errors = errorsOf(route).map((code) => [
    `<code>${code}</code>`,
    apiErrors[code].status,
    escape(apiErrors[code].meaning),
  ])
  return `<details><summary><span class="method ${route.method}">${route.method}</span><code>${escape(route.path)}</code>
<span>${escape(route.summary)}</span></summary><div class="inside"><p class="soft">Role: ${route.role}. Answers ${route.status}${
    route.answer === null ? ' without a body' : ''
  }${route.stream === undefined ? '' : ', also as <code>text/event-stream</code>'}.</p>${
    parameters.length === 0 ? '' : table(['parameter', 'in', 'type', ''], parameters)
  }${answerBlock(route)}${table(['error', 'status', 'meaning'], errors)}</div></details>`
}

function answerBlock({ answer }: Route): string {
  if (!(answer instanceof z.ZodType)) return ''
  const list = answer instanceof z.ZodArray
  const one = list ? answer.element : answer
  if (!(one instanceof z.ZodObject)) return ''
  return `<p class="soft">${list ? 'A list; each has' : 'The answer has'}:</p>${table(
    ['field', 'type', ''],
    rowsOf(one, '').map(([name = '', , type = '', text = '']) => [name, type, text]),
  )}`
}

function rowsOf(schema: z.ZodObject | undefined, where: string): string[][] {
  return Object.entries(schema?.shape ?? {}).map(([name, property]) => {
    const made = z.toJSONSchema(property as z.ZodType, { io: 'output', unrepresentable: 'any' })
    return [`<code>${escape(name)}</code>`, where, escape(typeName(made)), escape(made.description ?? '')]
  })
}

function typeName(made: z.core.JSONSchema.BaseSchema): string {
  if (made.enum !== undefined) return made.enum.map(String).join(' | ')
  if (made.anyOf !== undefined) return made.anyOf.map((one) => typeName(one)).join(' | ')
  return made.format === 'date-time' ? 'time' : String(made.type ?? 'any JSON')
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[], tag: string) =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
  return `<table><thead>${line(head, 'th')}</thead><tbody>${rows.map((row) => line(row, 'td')).join('')}</tbody></table>`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** What is here, for somebody who has only the address. Links are relative: a proxy may put a path in front. */
export function rootPage(version: string): string {
  const links = [
    ['docs', 'the API as a page to read'],
    ['openapi.json', 'the API as an OpenAPI document'],
    ['healthz', 'whether the process answers'],
    ['readyz', 'whether the database can be used'],
    ['metrics', 'metrics in the text format of Prometheus (needs a token where there are any)'],
  ].map(([path, what]) => `<li><a href="${path}">/${path}</a>: ${what}</li>`)
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Fencepost</title></head><body>
<h1>Fencepost ${escape(version)}</h1><p>This is an HTTP API for background jobs.</p><ul>${links.join('')}</ul></body></html>
`
}
