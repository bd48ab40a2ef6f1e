const hidden = '********'
const secretParameters = /pass|pwd|token|secret|apikey|api_key|^auth/i

/** Hides all of a secret but how it begins, which tells tokens apart. */
export function maskSecret(secret: string): string {
  const tokenId = /^fp_[0-9a-f]{12}_/.exec(secret)?.[0]
  return `${tokenId ?? ''}${hidden}`
}

/** Hides the password of a URL, wherever it is. What is no URL is hidden whole if it may hold one. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text)) return /password|@/i.test(text) ? hidden : text
  const url = new URL(text)
  // A password with an unescaped / ? or # is read as a port, and the rest of it as a path: nothing of it can be trusted.
  const isAmbiguous = /@/.test(url.pathname + url.hash) || (/@/.test(url.search) && url.password === '')
  if (isAmbiguous) return `${url.protocol}//${hidden}`
  const secrets = [...new Set(url.searchParams.keys())].filter((name) => secretParameters.test(name))
  const isUserSecret = url.username !== '' && url.password === '' && /^https?:$/.test(url.protocol)
  if (url.password === '' && secrets.length === 0 && !isUserSecret) return text
  if (isUserSecret) url.username = hidden
  if (url.password !== '') url.password = hidden
  for (const name of secrets) url.searchParams.set(name, hidden)
  return url.href
}
