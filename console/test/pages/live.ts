import { expect, test } from 'vitest';
import { caller } from '../support/caller.ts';
import type { ConsoleUnderTest } from '../support/console-under-test.ts';
import { totalOf } from '../support/history-page.ts';
import { sidewaysRoom, waitForQuiet } from '../support/page-measures.ts';
import { recordLife } from '../support/record-life.ts';

/** The history as it is recorded. */
export function liveTests(the: () => ConsoleUnderTest): void {
  test('new changes are announced at the top, nothing moves until they are requested, and then everything counts them', async () => {
    const { server, tenant, open, checkAccessibility } = the();
    await recordLife(server, tenant, { entity: 'ticker' }, ['{"n":1}']);
    const page = await open('history?q=entity%3Aticker', { width: 380, height: 760 });
    await page.getByText('Nothing new since').waitFor();
    const row = page.locator('.entry-row').first();
    // What is still to come above the list moves it.
    await waitForQuiet(page);
    const place = await row.boundingBox();
    await recordLife(server, tenant, { entity: 'other' }, ['{"n":1}']);
    // Older than the 30 days at which a query without a time looks.
    await recordLife(server, tenant, { entity: 'ticker', entityId: 'old', from: Date.now() - 40 * 86_400_000 }, ['{}']);
    await recordLife(server, tenant, { entity: 'ticker', before: '{"n":1}', actor: 'Ada' }, ['{"n":2}']);
    const button = page.getByRole('button', { name: '1 new change' });
    await button.waitFor();
    await page.getByText('Total, chart and list are of').waitFor();
    expect(await page.locator('.entry-row').count()).toBe(1);
    expect(await totalOf(page)).toBe(1);
    expect(await row.boundingBox()).toEqual(place);
    expect(await sidewaysRoom(page)).toBe(0);
    await checkAccessibility(page, '.history');
    await button.focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.entry-row').count()).toBe(2);
    await expect.poll(() => totalOf(page)).toBe(2);
    await page.getByText('Nothing new since').waitFor();

    // Turned off, nothing is announced, also in the next window.
    await page.getByRole('button', { name: 'Live' }).click();
    await expect.poll(() => page.locator('.live-line').count()).toBe(0);
    await page.reload();
    await row.waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Live' }).getAttribute('aria-pressed')).toBe('false');
  });

  test('a lost connection is shown, changes in between are announced once it is back, and a restored database is shown', async () => {
    const { server, tenant, open } = the();
    await recordLife(server, tenant, { entity: 'pulse' }, ['{"n":1}']);
    const call = await caller(the());
    const { cursor }: { cursor: string } = JSON.parse(await call('GET', `/changelog/${tenant}/feed?after=now`));
    const page = await open('about:blank', { statuses: [503] });
    let answers: 'live' | 'away' | 'service' | 'restored' = 'live';
    const event = (name: string, data: unknown) => `id: ${cursor}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    await page.route(/\/feed\?/, async (route) => {
      if (answers === 'service') return await route.continue();
      if (answers === 'away') return await route.fulfill({ status: 503, body: '' });
      const events =
        answers === 'live'
          ? [event('position', { position: 1 }), event('caught-up', { position: 1 })]
          : [event('reset', { reason: 'restored', oldest: cursor })];
      answers = 'away';
      await route.fulfill({ contentType: 'text/event-stream', body: events.join('') });
    });
    await page.goto(`${server.baseUrl}/console/history?q=entity%3Apulse`);
    await page.getByText('No connection since').waitFor();
    await page.locator('.entry-row').waitFor();
    await recordLife(server, tenant, { entity: 'pulse', before: '{"n":1}' }, ['{"n":2}']);
    answers = 'service';
    await page.getByRole('button', { name: '1 new change' }).waitFor();
    await page.getByText('Caught up at').waitFor();
    answers = 'restored';
    await page.reload();
    await page.getByText('The database was restored to an earlier state').waitFor();
    answers = 'service';
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByText('Nothing new since').waitFor();
    await page.unroute(/\/feed\?/);
  });
}
