/** The URL with settings that a connection brings along, after those that it has. A pooler in transaction mode refuses or drops them. */
export function withSettings(url: string, settings: Readonly<Record<string, string>>): string {
  const parsed = new URL(url);
  const given = parsed.searchParams.get('options');
  // The server splits the options at white space.
  const ours = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`);
  parsed.searchParams.set('options', [...(given === null ? [] : [given]), ...ours].join(' '));
  return parsed.href;
}
