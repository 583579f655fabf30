import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { startTestServer } from '../../../test/support/server/server.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { totalOf } from '../support/history-page.ts';
import { sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

/** A service that stops, and a network that goes, while a page is open. */
export function offlineTests(the: () => ConsoleUnderTest): void {
  /** A second process's worth of the service, which can be stopped and started at one address. */
  async function startSecond() {
    const { database } = the().server;
    let server = await startTestServer({ database });
    const { baseUrl } = server;
    return {
      baseUrl,
      stop: () => server.close(),
      async start() {
        server = await startTestServer({ database, port: Number(new URL(baseUrl).port) });
      },
    };
  }

  const line = (page: Page) => page.getByText('The service cannot be reached since');

  test('a service that stops is said in one line, costs few requests, and when it is back all boxes load by themselves', async () => {
    const { open, server, tenant, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'lamp', entityId: 'l1' }, ['{"n":1}']);
    const second = await startSecond();
    const page = await open('history?q=entity%3Alamp', {
      baseUrl: second.baseUrl,
      losesService: true,
      fresh: true,
      width: 390,
    });
    await page.getByText('Nothing new since').waitFor();
    await waitForQuiet(page);
    await second.stop();
    await line(page).waitFor();
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));

    // Pages whose code and data are still to come, a value that is written, and the way back.
    await page.evaluate(() => scrollTo(0, 0));
    await page.getByRole('combobox', { name: 'Query' }).fill('entity:lamp type:create');
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Query' }).fill('entity:lamp actor:');
    await page.waitForTimeout(3_000);
    expect(await page.locator('.failure').count()).toBe(0);
    expect(await page.locator('.entry-row').count()).toBe(1);
    expect(await line(page).count()).toBe(1);
    const text = await page.locator('body').textContent();
    expect(text).not.toMatch(/CORS|[0-9a-f]{8}-[0-9a-f]{4}|No connection/i);
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page);
    // Pauses of 0.5 to 1 s, 1 to 2 s and 2 to 4 s.
    expect(requests.length).toBeLessThanOrEqual(6);
    expect(requests.filter((url) => !url.endsWith('/console/api/session'))).toEqual([]);

    await recordLife(server, tenant, { entity: 'lamp', entityId: 'l2' }, ['{"n":1}']);
    await second.start();
    await expect.poll(() => totalOf(page)).toBe(2);
    await expect.poll(() => line(page).count()).toBe(0);
    await expect.poll(() => page.locator('.entry-row').count()).toBe(2);
    await expect.poll(() => page.locator('.chart canvas, .bar-chart').count()).toBeGreaterThan(0);
    expect(await page.getByRole('combobox', { name: 'Query' }).inputValue()).toBe('entity:lamp actor:');
    // The feed is there again as well.
    await recordLife(server, tenant, { entity: 'lamp', entityId: 'l3' }, ['{"n":1}']);
    await page.getByRole('button', { name: '1 new change' }).waitFor();
    await second.stop();
  });

  test('a page whose code was never fetched opens once the network is there again, at once when the browser says so', async () => {
    const { open } = the();
    const page = await open('history', { losesService: true, fresh: true });
    await page.locator('.entry-row').first().waitFor();
    await waitForQuiet(page);
    // Longer than an answer counts as one of now.
    await page.waitForTimeout(5_500);
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Data', exact: true }).click();
    await line(page).waitFor();
    expect(await page.locator('.failure').count()).toBe(0);
    const at = Date.now();
    await page.context().setOffline(false);
    await page.getByRole('navigation', { name: 'Data' }).waitFor();
    expect(await line(page).count()).toBe(0);
    expect(Date.now() - at).toBeLessThan(20_000);
  });
}
