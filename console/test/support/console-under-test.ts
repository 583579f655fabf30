import type { Page } from 'playwright-core';
import { preparedShop } from '../../../src/demo/prepared-shop.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { storeDocuments } from '../../../src/tenants/custom-entities/store-documents.ts';
import { startTestServer, type TestServer } from '../../../test/support/server/server.ts';
import { startToolServer, type ToolServerStub } from '../../../test/support/vendor/tool-server.ts';
import { startVendor, type Vendor } from '../../../test/support/vendor/vendor-server.ts';
import { checkAccessibility } from './accessibility.ts';
import { startChromium } from './chromium.ts';
import { createWindows, type OpenOptions } from './windows.ts';

/** The page as it was built, on a service with the demo's shop, in one browser. */
export interface ConsoleUnderTest {
  readonly server: TestServer;
  /** All providers of language models; the shared token is that of OpenAI's. */
  readonly vendor: Vendor;
  /** A server of tools that agents may call. */
  readonly tools: ToolServerStub;
  /** The tenant with the shop. */
  readonly tenant: string;
  /** Opens an address below `/console/`, such as `history?q=type:create`, in a window that no other page of the test has. */
  open(address: string, options?: OpenOptions): Promise<Page>;
  /** Fails where axe finds something, light and dark, in the whole page or in the part that a selector names. */
  checkAccessibility(page: Page, part?: string): Promise<void>;
  /** Ends a test. Fails where the browser logged an error, or a page called another place. */
  leaveWindows(): Promise<void>;
  end(): Promise<void>;
}

const tenant = 'demo';

export async function startConsole(): Promise<ConsoleUnderTest> {
  const [vendor, tools] = await Promise.all([startVendor(), startToolServer()]);
  const [server, browser] = await Promise.all([startService(vendor, tools), startChromium({ optimizes: false })]);
  const windows = createWindows(browser, server, tenant);
  return {
    server,
    vendor,
    tools,
    tenant,
    open: windows.open,
    checkAccessibility,
    leaveWindows: windows.leave,
    async end() {
      await browser.close();
      await server.close();
      await Promise.all([vendor.close(), tools.close()]);
    },
  };
}

async function startService(vendor: Vendor, tools: ToolServerStub): Promise<TestServer> {
  const server = await startTestServer({
    environment: {
      OPENAI_BASE_URL: vendor.baseUrl,
      ANTHROPIC_BASE_URL: vendor.baseUrl,
      ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
      ANNALS_SELF_HOSTED_ALLOW: new URL(tools.url).host,
      ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.0/8`,
    },
  });
  const { db } = server.context;
  await server.createTenant(tenant);
  const now = Date.now();
  const { changes, claimType: type, claims: instances } = await preparedShop(now);
  await inTransaction(db, (transaction) => storeDocuments(transaction, tenant, { type, instances, now }));
  await createRecorder(db, tenant, () => now)(changes);
  return server;
}
