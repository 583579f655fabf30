/// <reference path="./oidc-provider.d.ts" />
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A certified OpenID provider, with a sign-in form that accepts any name. */
export interface CertifiedProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** It answers every request with 503. */
  isAway: boolean;
  /** It answers from then on: the service and the provider have to know each other's address. */
  serve(baseUrl: string): Promise<void>;
  stop(): Promise<void>;
}

/** Its site is another one than that of 127.0.0.1, so the browser treats its redirects as those of a stranger. */
export async function startCertifiedProvider(groups: readonly string[]): Promise<CertifiedProvider> {
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end();
  const server = createServer((request, response) => {
    if (provider.isAway) response.writeHead(503).end();
    else answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const [clientId, clientSecret] = ['annals', randomBytes(24).toString('base64url')];
  const provider: CertifiedProvider = {
    issuer,
    clientId,
    clientSecret,
    isAway: false,
    async serve(baseUrl) {
      const { default: Provider } = await quietly(() => import('oidc-provider'));
      const certified = await quietly(
        async () =>
          new Provider(issuer, {
            clients: [
              {
                client_id: clientId,
                client_secret: clientSecret,
                token_endpoint_auth_method: 'client_secret_post',
                grant_types: ['authorization_code', 'refresh_token'],
                redirect_uris: [`${baseUrl}/console/oidc/callback`],
                post_logout_redirect_uris: [`${baseUrl}/console/`],
              },
            ],
            claims: { openid: ['sub'], profile: ['name', 'groups'] },
            // The rules ask the ID token.
            conformIdTokenClaims: false,
            // It tells of each that is left out.
            ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, RefreshToken: 600, IdToken: 600 },
            features: { rpInitiatedLogout: { logoutSource: showSignOut } },
            issueRefreshToken: async () => true,
            findAccount: (_context: unknown, accountId: string) => ({
              accountId,
              claims: async () => ({ sub: accountId, name: accountId, groups }),
            }),
          }),
      );
      answer = certified.callback();
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return provider;
}

async function showSignOut(context: { body: string }, form: string): Promise<void> {
  const button = '<button form="op.logoutForm" name="logout" value="yes">Yes, sign me out</button>';
  context.body = `<!doctype html><title>Sign out</title>${form}${button}`;
}

/** It warns of its forms and keys, which are for tests alone. */
async function quietly<Result>(work: () => Promise<Result>): Promise<Result> {
  const { warn, info } = console;
  console.warn = console.info = () => {};
  try {
    return await work();
  } finally {
    Object.assign(console, { warn, info });
  }
}
