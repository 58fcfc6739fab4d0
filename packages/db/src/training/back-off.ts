/** Wait before the next try, doubling from 1 s to at most 30 s. SQL interval from an SQL count of earlier failures. */
export const backOff = (failures: string): string => `least(30, power(2, least(${failures}, 5))) * interval '1 second'`;
