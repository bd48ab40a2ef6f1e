/** A bar as wide as given: full blocks for what is done. Without a total nobody knows how long it is. */
export function bar({ current, total }: { current: number; total: number | null }, width: number): string {
  if (total === null) return '░'.repeat(width)
  const part = total === 0 ? 1 : Math.min(1, current / total)
  const full = Math.round(part * width)
  return '█'.repeat(full) + '░'.repeat(width - full)
}

/** How much is done, in words. */
export function percent({ current, total }: { current: number; total: number | null }): string {
  if (total === null) return String(current)
  const part = total === 0 ? 1 : Math.min(1, current / total)
  return `${String(Math.floor(part * 100)).padStart(3)} %  ${current} of ${total}`
}
