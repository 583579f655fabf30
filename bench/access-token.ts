import type { NewClient } from '../src/access/oauth/clients.ts';

/** Gets an access token for the client. Throws if the service gives none. */
export async function tokenOf(
  baseUrl: string,
  { clientId, clientSecret }: Pick<NewClient, 'clientId' | 'clientSecret'>,
): Promise<string> {
  const response = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    }),
  });
  const { access_token: token } = (await response.json()) as { access_token?: string };
  if (token === undefined) throw new Error(`no token: ${response.status}`);
  return token;
}
