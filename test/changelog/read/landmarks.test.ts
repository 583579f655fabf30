import { describe, expect, it } from 'vitest';
import { Landmarks } from '../../../src/changelog/read/landmarks.ts';

const now = 10_000_000;
const since = 0;
const start = { moment: 0, rank: 100_000 };

describe('a way', () => {
  it('begins at the landmark that is nearest to the page', () => {
    const landmarks = new Landmarks(1);
    landmarks.add({ moment: 5_000_000, rank: 50_000 });
    const to = (first: number) => landmarks.wayTo({ first, last: first + 20, since, start, now });
    expect(to(0)).toMatchObject({ landmark: null, upward: false });
    expect(to(50_000)).toMatchObject({ landmark: { rank: 50_000 }, upward: false });
    expect(to(49_980)).toMatchObject({ landmark: { rank: 50_000 }, upward: true });
    expect(to(99_980)).toMatchObject({ landmark: null, upward: true });
  });

  it('is none where the nearest landmark is more than 200 entries away', () => {
    const landmarks = new Landmarks(1);
    landmarks.add({ moment: 5_000_000, rank: 50_000 });
    const to = (first: number) => landmarks.wayTo({ first, last: first + 20, since, start, now });
    expect(to(50_200)).toMatchObject({ upward: false });
    expect(to(50_201)).toBeUndefined();
    expect(to(49_780)).toMatchObject({ upward: true });
    expect(to(49_779)).toBeUndefined();
  });

  it('reaches as far as twice what is wanted takes, or to where that is known to be', () => {
    const landmarks = new Landmarks(1);
    landmarks.add({ moment: 5_000_000, rank: 50_000 });
    expect(landmarks.wayTo({ first: 50_000, last: 50_020, since, start, now })).toMatchObject({
      until: 5_000_000 - 1_000 - 2 * 20 * 100,
    });
    landmarks.add({ moment: 4_998_000, rank: 50_020 });
    expect(landmarks.wayTo({ first: 50_000, last: 50_020, since, start, now })).toMatchObject({ until: 4_998_000 });
  });
});

describe('landmarks', () => {
  it('are kept in the order of time, each once', () => {
    const landmarks = new Landmarks(1);
    for (const moment of [300, 100, 200, 100]) landmarks.add({ moment, rank: 1_000 - moment });
    expect(landmarks.size).toBe(3);
    expect(landmarks.atOrAfter(101)).toEqual({ moment: 200, rank: 800 });
    expect(landmarks.atOrAfter(301)).toBeUndefined();
    expect(landmarks.at(200)).toEqual({ moment: 200, rank: 800 });
    expect(landmarks.at(201)).toBeUndefined();
    landmarks.dropBefore(200);
    expect(landmarks.atOrAfter(0)).toEqual({ moment: 200, rank: 800 });
  });

  it('are 256 at most', () => {
    const landmarks = new Landmarks(1);
    for (let moment = 0; moment < 256; moment++) landmarks.add({ moment, rank: 1_000 - moment });
    expect(landmarks.size).toBe(256);
    landmarks.add({ moment: 256, rank: 744 });
    expect(landmarks.size).toBe(129);
  });
});
