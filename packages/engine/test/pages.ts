import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Reading the pages of the documentation, and the files they are about, by their paths in the repository.

export const root = fileURLToPath(new URL('../../../', import.meta.url))

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

export function filesIn(directory: string, suffix: string): string[] {
  const names = readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith(suffix)).map((name) => join(directory, name))
}

export function blocksOf(page: string, language: string): string[] {
  return fencesOf(page).flatMap(({ info, text }) => (info === language ? [text] : []))
}

export function quotesIn(page: string): { path: string; text: string }[] {
  return fencesOf(page).flatMap(({ info, text }) => {
    const [, path] = info.split(' ')
    return path === undefined ? [] : [{ path, text }]
  })
}

function fencesOf(page: string): { info: string; text: string }[] {
  return [...read(page).matchAll(/^```([^`\n]*)\n(.*?)^```$/gms)].map(([, info = '', text = '']) => ({ info, text }))
}

export function headingsOf(page: string): string[] {
  const prose = read(page).replaceAll(/^```.*?^```$/gms, '')
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
}

/** The cells of the first table below a heading, without its head. */
export function tableOf(page: string, heading: string): string[][] {
  const text = read(page)
  const below = new RegExp(`^#+ ${heading}$(.*?)(?=^#|$(?![^]))`, 'ms').exec(text)?.[1] ?? ''
  const [table = ''] = /(?:^\|.*\n?)+/m.exec(below) ?? []
  const rows = table.trim().split('\n').slice(2)
  if (rows.length === 0) throw new Error(`${page} has no table below ${heading}`)
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

export function unquoted(cell: string | undefined): string {
  return cell?.replaceAll('`', '') ?? ''
}

/** The value that a table gives as code: a number, a string or a boolean. */
export function literal(cell: string | undefined): unknown {
  const text = unquoted(cell)
  if (/^[\d_]+$/.test(text)) return Number(text.replaceAll('_', ''))
  return JSON.parse(text.replaceAll("'", '"')) as unknown
}
