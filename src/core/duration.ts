const units = { W: 604_800_000, D: 86_400_000, H: 3_600_000, M: 60_000, S: 1_000 } as const;

/** ISO 8601 durations without years and months, whose length depends on the calendar. */
export const durationPattern =
  '^P(?:[0-9]{1,5}W|[0-9]{1,5}D|(?:[0-9]{1,5}D)?T(?:[0-9]{1,6}H(?:[0-9]{1,6}M)?(?:[0-9]{1,6}S)?|' +
  '[0-9]{1,6}M(?:[0-9]{1,6}S)?|[0-9]{1,6}S))$';

/** The milliseconds of a duration that matches the pattern: `P1D`, `PT90M`, `P2W`. */
export function millisecondsOf(duration: string): number {
  const [date = '', time = ''] = duration.slice(1).split('T');
  const sum = (text: string) =>
    [...text.matchAll(/(\d+)([WDHMS])/g)].reduce((all, [, digits, unit]) => all + Number(digits) * lengthOf(unit), 0);
  return sum(date) + sum(time);
}

function lengthOf(unit: string | undefined): number {
  return units[unit as keyof typeof units];
}
