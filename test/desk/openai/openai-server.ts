import OpenAI from 'openai';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { startVendor, type Vendor } from '../../support/vendor/vendor-server.ts';
import { describedFetch } from './described-fetch.ts';

export const providers = ['openai', 'anthropic', 'google', 'self_hosted'] as const;

export interface OpenaiServer {
  vendor: Vendor;
  server: TestServer;
  /** Starts another server of the same installation. */
  another(): Promise<TestServer>;
  /**
   * A client of the first provider's own package. Without `retries` it makes one attempt. What it reads is checked
   * against OpenAI's description.
   */
  clientOf(tenant: string, retries?: number): Promise<OpenAI>;
  /** Makes a tenant that has a key of every provider. */
  tenantWithKeys(tenant: string): Promise<void>;
  /** Rejects where an answer to one of the clients was not as OpenAI describes it. */
  close(): Promise<void>;
}

export async function startOpenai(environment: Record<string, string> = {}): Promise<OpenaiServer> {
  const vendor = await startVendor();
  const faults: unknown[] = [];
  const described = describedFetch(faults);
  const settings = {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
    GOOGLE_BASE_URL: vendor.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    ANNALS_COMPLETION_MODEL: 'gpt-4.1-mini',
    ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
    ...environment,
  };
  const server = await startTestServer({ environment: settings });
  return {
    vendor,
    server,
    another: () => startTestServer({ environment: settings, database: server.database }),

    async clientOf(tenant, retries = 0) {
      const apiKey = await server.token(tenant);
      const baseURL = `${server.baseUrl}/openai/${tenant}/v1`;
      return new OpenAI({ apiKey, baseURL, maxRetries: retries, fetch: described });
    },

    async tenantWithKeys(tenant) {
      const token = await server.token(tenant);
      const items = [
        { key: 'providerApiToken', value: 'sk-openai' },
        { key: 'anthropicApiToken', value: 'sk-anthropic' },
        { key: 'googleApiToken', value: 'sk-google' },
        { key: 'selfHostedProvider', value: { url: vendor.baseUrl, apiKey: 'sk-server' } },
      ];
      const response = await server.call(`/configuration/${tenant}/configurations`, { token, json: items });
      if (response.status !== 201) throw new Error(await response.text());
      const text = await response.text();
      if (items.some(({ value }) => text.includes(typeof value === 'string' ? value : value.apiKey))) {
        throw new Error('a key is shown');
      }
    },

    async close() {
      await server.close();
      await vendor.close();
      if (faults.length > 0) throw new AggregateError(faults, `not as OpenAI describes it: ${faults.join('\n')}`);
    },
  };
}
