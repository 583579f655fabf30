import { type Picture, shows } from './picture.ts';

/** The pictures of docs/images. */
export const guidePictures: readonly Picture[] = [
  { name: 'console-overview', address: 'overview', ready: shows('.bar-chart canvas') },
  { name: 'console-history', address: 'history', ready: shows('.bar-chart canvas') },
  {
    name: 'console-change',
    address: `history?${new URLSearchParams({ q: 'entity:WARRANTY_CLAIM type:update' })}`,
    options: { viewport: { width: 1440, height: 800 } },
    ready: async (page) => {
      await page.locator('.entry-link', { hasText: 'resolution' }).first().click();
      await page.locator('.path-item').first().waitFor();
    },
  },
  {
    name: 'console-document',
    address: `document?${new URLSearchParams({ entity: 'product', id: 'brisk-go', changes: '1' })}`,
    ready: shows('.json-tree'),
  },
  {
    name: 'console-query-dark',
    address: 'history',
    options: { colorScheme: 'dark' },
    ready: async (page) => {
      await page.getByRole('combobox', { name: 'Query' }).focus();
      await page.keyboard.type('type:update actor:j');
      await page.getByRole('option').first().waitFor();
    },
  },
];
