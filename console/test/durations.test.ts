import { expect, test } from 'vitest';
import { durationOf, durationWords, isoOf, noDuration } from '../src/components/times.ts';

test('a duration is a number and the largest unit that tells it whole, and is sent as ISO 8601', () => {
  const stored = ['P1D', 'P2W', 'PT90M', 'PT3600S', 'P1DT12H', 'PT1M30S', 'P14D'];
  expect(stored.map((iso) => Object.values(durationOf(iso)).join(' '))).toEqual([
    '1 days',
    '2 weeks',
    '90 minutes',
    '1 hours',
    '36 hours',
    '90 seconds',
    '14 days',
  ]);
  expect(stored.map((iso) => isoOf(durationOf(iso)))).toEqual([
    'P1D',
    'P2W',
    'PT90M',
    'PT1H',
    'PT36H',
    'PT90S',
    'P14D',
  ]);
  expect(isoOf({ count: ' 7 ', unit: 'hours' })).toBe('PT7H');
  expect(isoOf(noDuration)).toBeUndefined();
  expect(['P1D', 'PT90M'].map(durationWords)).toEqual(['1 day', '90 minutes']);
});
