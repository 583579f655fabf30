// Gets an access token: POST /oauth/token. Run it with: node examples/token.ts

/** Reads a variable that "annals demo" prints as an export ready to paste. */
export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set; paste the exports that "annals demo" prints`);
  return value;
}

/** An access token; good for `expires_in` seconds. Without `scope` it has all scopes of the client. */
export async function getToken(scope?: string): Promise<string> {
  const credentials = `${setting('ANNALS_CLIENT_ID')}:${setting('ANNALS_CLIENT_SECRET')}`;
  const response = await fetch(`${setting('ANNALS_URL')}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope === undefined ? {} : { scope }) }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const { access_token } = (await response.json()) as { access_token: string };
  return access_token;
}

if (import.meta.main) console.log(await getToken('changelog.changelog_read'));
